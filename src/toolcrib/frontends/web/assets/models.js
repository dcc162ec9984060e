// What a model is given of a tool, as its provider spells it. What this draws with, and how it asks, the page hands over.

const FORMATS = {
  openai_chat: 'OpenAI Chat', openai_responses: 'OpenAI Responses', openai_realtime: 'OpenAI Realtime', anthropic: 'Anthropic',
  gemini: 'Gemini', gemini_live: 'Gemini Live', gemini_live_vertex: 'Gemini Live on Vertex', deepgram: 'Deepgram',
  elevenlabs: 'ElevenLabs', langchain: 'LangChain', mcp: 'MCP',
}

export function declaring({ draw, ask, tried, code, pretty }) {
  return tool => {
    const told = draw('div', { class: 'declared' })
    const format = draw('select', { 'aria-label': 'Provider format', onchange: () => look() },
      Object.entries(FORMATS).map(([name, title]) => draw('option', { value: name }, title)))
    const look = tried(async () => {
      const wanted = format.value
      // The whole name finds the tool itself before all others.
      const found = await ask(`/api/tools?format=${wanted}&limit=1&q=${encodeURIComponent(tool.name)}`)
      if (wanted !== format.value) return
      const withheld = (found.withheld ?? []).find(each => each.name === tool.name)
      told.replaceChildren(withheld ? draw('p', { class: 'quiet' }, `It is not declared: it ${withheld.reason}.`) : code(pretty(found.tools)))
    })
    const fold = draw('details', { class: 'models', ontoggle: () => { if (fold.open) look() } },
      draw('summary', {}, 'Declaration for a model'), format, told)
    return fold
  }
}
