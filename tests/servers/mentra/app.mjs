// A shopping list on Mentra's own SDK, as its authors write them: nothing in it knows of Toolcrib.
import { AppServer } from "@mentra/sdk";

class ShoppingList extends AppServer {
  seen = { calls: [], sessions: [], stops: [] };

  async onSession(session, sessionId, userId) {
    this.seen.sessions.push({ sessionId, userId, model: session.capabilities?.modelName });
    session.events.onTranscription((heard) => session.layouts.showTextWall(`You said: ${heard.text}`));
  }

  async onToolCall({ activeSession, ...call }) {
    this.seen.calls.push(call);
    if (call.toolId === "fail") throw new Error("the list is full");
    const added = `added ${call.toolParameters.item}`;
    activeSession?.layouts.showTextWall(added);
    return added;
  }

  async onStop(sessionId, userId, reason) {
    await super.onStop(sessionId, userId, reason);
    this.seen.stops.push({ sessionId, userId, reason });
  }
}

const { PACKAGE, API_KEY, PORT } = process.env;
const app = new ShoppingList({ packageName: PACKAGE, apiKey: API_KEY, port: Number(PORT), cloudApiUrl: "127.0.0.1:9" });
app.getExpressApp().get("/seen", (_, answer) => answer.json(app.seen));
await app.start();
