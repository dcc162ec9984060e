// The page's session: the secret given at sign-in, kept in this origin's storage, and sent with every request.

const SECRET = 'toolcrib.secret', HEADER = 'X-Crib-Token', LINK = '#token=', OTHER_TAB_MS = 1000

export class Failure extends Error {}

export const secret = () => localStorage.getItem(SECRET)

// Takes the token of a link out of the address, so that neither history nor a copied address holds it.
export function takeToken() {
  if (!location.hash.startsWith(LINK)) return null
  const token = location.hash.slice(LINK.length)
  history.replaceState(null, '', '/')
  return token
}

// Settles once no sign-in of this tab is under way: while one is, the old session has ended and the new secret is not yet here.
let signingIn = Promise.resolve()

// Whether the link was good. A session that this browser had before is replaced.
export function exchange(token) {
  const outcome = exchanged(token)
  signingIn = Promise.allSettled([signingIn, outcome])
  return outcome
}

async function exchanged(token) {
  const before = secret()
  const headers = { 'Content-Type': 'application/json', ...(before ? { [HEADER]: before } : {}) }
  const answer = await fetch('/api/signin/exchange', { method: 'POST', body: JSON.stringify({ token }), headers })
  if (answer.ok) localStorage.setItem(SECRET, (await answer.json()).secret)
  return answer.ok
}

export async function signInWithKey(key) {
  const answer = await fetch('/api/signin', { method: 'POST', headers: { Authorization: `Bearer ${key}` } })
  if (!answer.ok) throw new Failure(answer.status === 403 ? 'This key is not allowed to sign in.' : 'Unknown key.')
  const { url } = await answer.json()
  if (!await exchange(url.slice(url.indexOf(LINK) + LINK.length))) throw new Failure('Signing in failed. Try again.')
}

export const isStale = error => error?.details?.freshSignIn === true

// Sends a request of the page; one refused because the sign-in is too old is answered as such to the caller.
export async function send(path, options = {}) {
  await signingIn
  const used = secret()
  const answer = await fetch(path, { ...options, headers: { ...options.headers, [HEADER]: used ?? '' } })
  if (answer.status !== 401 || isStale((await answer.clone().json()).error)) return answer
  if (await isReplaced(used)) return send(path, options)
  end('#ended')
  throw new Failure('signed out')
}

// Whether a sign-in, here or in another tab, has replaced the session of a secret; that of another tab is waited for a moment.
async function isReplaced(used) {
  await signingIn
  if (secret() === used) await new Promise(resolve => {
    const over = new AbortController()
    const done = () => { over.abort(); resolve() }
    addEventListener('storage', event => { if (event.key === SECRET) done() }, { signal: over.signal })
    setTimeout(done, OTHER_TAB_MS)
  })
  return secret() !== null && secret() !== used
}

export async function signOut() {
  await send('/api/signout', { method: 'POST' })
  end('')
}

// Forgets the secret, and with the page all it shows; other tabs hear of it from the storage.
function end(why) {
  localStorage.removeItem(SECRET)
  history.replaceState(null, '', `/${why}`)
  location.reload()
}

// Calls back when another tab has signed in, or when a link is opened in this one; leaves when another signed out.
export function watch({ onSignIn, onBadLink }) {
  addEventListener('storage', event => {
    if (event.key !== SECRET && event.key !== null) return
    if (secret()) onSignIn()
    else if (event.oldValue) location.reload()
  })
  addEventListener('hashchange', async () => {
    const token = takeToken()
    if (token === null) return
    if (await exchange(token)) onSignIn()
    else onBadLink()
  })
}
