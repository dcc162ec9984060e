// The page: what the API tells, drawn with text nodes alone; nothing that comes from a tool is ever read as markup.

import { panels } from '/assets/apps.js'
import { hinting } from '/assets/hints.js'
import { declaring } from '/assets/models.js'
import { Failure, exchange, isStale, secret, send, signInWithKey, signOut, takeToken, watch } from '/assets/session.js'

const at = id => document.getElementById(id)
const origin = location.origin
const MOST_SHOWN = 200
const POLL_MS = 5000, UNUSED_MS = 15 * 60_000

// --- drawing ---

function draw(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else if (typeof value === 'boolean') element.toggleAttribute(name, value)
    else if (value !== undefined && value !== null) element.setAttribute(name, value)
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined))
  return element
}

const show = (element, yes = true) => { element.hidden = !yes }
const pretty = value => JSON.stringify(value, null, 2)

function copier(text) {
  const button = draw('button', { type: 'button', class: 'small', onclick: async () => {
    await navigator.clipboard.writeText(text())
    button.textContent = 'Copied'
    setTimeout(() => { button.textContent = 'Copy' }, 1500)
  } }, 'Copy')
  return button
}

function code(text) {
  return draw('div', { class: 'code' }, draw('pre', { tabindex: '0' }, text), copier(() => text))
}

let serial = 0
function tabs(label, entries) {
  const group = `tabs-${++serial}`
  const panels = entries.map(([, content], i) =>
    draw('div', { role: 'tabpanel', id: `${group}-p${i}`, 'aria-labelledby': `${group}-t${i}`, hidden: i > 0 }, content))
  const heads = entries.map(([name], i) => draw('button', {
    type: 'button', role: 'tab', id: `${group}-t${i}`, 'aria-controls': `${group}-p${i}`, 'aria-selected': String(i === 0),
    tabindex: i === 0 ? '0' : '-1', onclick: () => choose(i),
  }, name))
  function choose(chosen) {
    entries[chosen][2]?.()
    heads.forEach((head, i) => {
      head.setAttribute('aria-selected', String(i === chosen))
      head.tabIndex = i === chosen ? 0 : -1
      show(panels[i], i === chosen)
    })
  }
  const list = draw('div', { role: 'tablist', 'aria-label': label, onkeydown: event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    const next = (heads.indexOf(document.activeElement) + step + heads.length) % heads.length
    choose(next)
    heads[next].focus()
  } }, heads)
  return draw('div', {}, list, panels)
}

// --- talking to the gateway ---

async function ask(path, options = {}) {
  const headers = options.body ? { 'Content-Type': 'application/json' } : {}
  const answer = await send(path, { ...options, headers })
  const body = await answer.json()
  if (isStale(body.error)) {
    await freshSignIn()
    return ask(path, options)
  }
  if (!answer.ok) throw new Failure(body.error ? body.error.message : `the gateway answered ${answer.status}`)
  return body
}

let lost = false
function complain(error) {
  lost = !(error instanceof Failure)
  at('trouble').textContent = lost ? 'The gateway cannot be reached. Is it still running?' : error.message
  show(at('trouble'))
}

// Asks for a fresh sign-in above what is there, so that nothing typed is lost; what was refused can then be sent again.
let signedInAgain = () => {}
function freshSignIn() {
  const dialog = at('fresh')
  show(at('fresh-trouble'), false)
  if (!dialog.open) dialog.showModal()
  return new Promise((resolve, reject) => {
    const over = new AbortController()
    const done = outcome => { over.abort(); dialog.close(); at('fresh-key').value = ''; outcome() }
    signedInAgain = () => done(resolve)
    dialog.addEventListener('close', () => done(() => reject(new Failure('Nothing was changed: this requires a fresh sign-in.'))), { signal: over.signal })
  })
}

const content = () => show(at('trouble'), false)
const tried = work => (...given) => work(...given).then(content, complain)

// Runs a tool and tells of what happens meanwhile; gives the whole result.
async function run(name, given, tell) {
  const answer = await send('/api/tools/execute', { method: 'POST', body: JSON.stringify({ name, arguments: given }),
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' } })
  if (!answer.headers.get('content-type').startsWith('text/event-stream')) return answer.json()
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) throw new Failure('the gateway ended the call without a result')
    text += value
    const events = text.split('\n\n')
    text = events.pop()
    for (const event of events) {
      const kind = /^event: (.*)$/m.exec(event)
      if (!kind) continue
      const data = JSON.parse(/^data: (.*)$/m.exec(event)[1])
      if (kind[1] === 'result') return data
      tell(data)
    }
  }
}

// --- a form from a JSON Schema ---

function resolved(schema, root) {
  while (schema?.$ref?.startsWith('#/')) schema = schema.$ref.slice(2).split('/').reduce((at, key) => at?.[key], root)
  const choices = schema?.anyOf ?? schema?.oneOf
  const real = choices?.map(each => resolved(each, root)).filter(each => each?.type !== 'null')
  return real?.length === 1 ? { ...real[0], ...schema, anyOf: undefined, oneOf: undefined, type: real[0].type } : schema ?? {}
}

// One input of the form: the element, how to fill it, and how to read it (undefined where it is left empty).
function control(schema, id) {
  const kind = Array.isArray(schema.type) ? schema.type.find(each => each !== 'null') : schema.type
  const made = (element, write, read) => ({
    element,
    set: value => { element.value = write(value) },
    get: () => element.value.trim() === '' ? undefined : read(element.value),
  })
  if (schema.enum) {
    const options = schema.enum.map((each, i) => draw('option', { value: String(i) }, String(each)))
    const element = draw('select', { id }, draw('option', { value: '' }, ''), options)
    return made(element, value => String(schema.enum.indexOf(value)), text => schema.enum[Number(text)])
  }
  if (kind === 'boolean') {
    const element = draw('select', { id }, ['', 'true', 'false'].map(each => draw('option', { value: each }, each)))
    return made(element, String, text => text === 'true')
  }
  if (kind === 'number' || kind === 'integer') {
    const step = kind === 'integer' ? '1' : 'any'
    return made(draw('input', { id, type: 'number', step, min: schema.minimum, max: schema.maximum }), String, Number)
  }
  if (kind === 'string') {
    const long = !schema.maxLength || schema.maxLength > 300
    const line = () => draw('input', { id, type: 'text', maxlength: schema.maxLength })
    return made(long ? draw('textarea', { id, rows: '2', class: 'prose' }) : line(), String, text => text)
  }
  const placeholder = kind === 'array' ? '[ … ]' : '{ … }'
  return made(draw('textarea', { id, rows: '2', spellcheck: 'false', placeholder }), JSON.stringify, JSON.parse)
}

function form(schema) {
  const parts = new Map()
  const rows = Object.entries(schema.properties ?? {}).map(([name, raw], i) => {
    const field = resolved(raw, schema), id = `field-${serial}-${i}`
    const part = control(field, id)
    parts.set(name, part)
    if (field.default !== undefined && field.default !== null) part.set(field.default)
    const label = draw('label', { for: id, class: schema.required?.includes(name) ? 'required' : '' }, name)
    return draw('div', { class: 'field' }, label, part.element, field.description ? draw('p', { class: 'quiet' }, field.description) : null)
  })
  return {
    element: draw('div', { class: 'fields' }, rows.length ? rows : draw('p', { class: 'quiet' }, 'This tool takes no arguments.')),
    fill: values => parts.forEach((part, name) => { if (values[name] !== undefined) part.set(values[name]) }),
    read: () => {
      const values = {}
      for (const [name, part] of parts) {
        try {
          const value = part.get()
          if (value !== undefined) values[name] = value
        } catch { throw new Failure(`${name} is not valid JSON`) }
      }
      return values
    },
  }
}

// --- the tools ---

let all = [], chosen = null, freshKey = null, sought = null, asked = 0

async function seek() {
  const words = at('search').value.trim(), mine = ++asked
  at('list').setAttribute('aria-busy', 'true')
  const found = words ? await ask(`/api/tools?limit=${MOST_SHOWN}&q=${encodeURIComponent(words)}`) : null
  // Whoever has typed on meanwhile waits for another answer.
  if (mine !== asked) return
  sought = found
  listTools()
  at('list').setAttribute('aria-busy', 'false')
}

function listTools() {
  const found = sought?.tools ?? all, total = sought?.total ?? all.length
  at('count').textContent = sought ? `${total} of ${all.length}` : `${all.length} in all`
  at('list').replaceChildren(...found.slice(0, MOST_SHOWN).map(tool => draw('li', {}, draw('button', {
    type: 'button', 'aria-current': String(tool.name === chosen?.name), onclick: () => choose(tool),
  }, draw('span', { class: 'line' }, draw('b', {}, tool.title ?? tool.name), draw('span', { class: 'quiet' }, `${tool.source} · ${tool.category}`)),
  draw('small', {}, tool.description.split('\n')[0])))))
  const note = text => at('list').append(draw('li', { class: 'empty' }, text))
  if (!found.length) note(all.length ? 'No tool matches.' : 'There are no tools yet.')
  if (total > MOST_SHOWN) note(`${total - MOST_SHOWN} more: search to narrow them down.`)
}

const find = name => all.find(tool => tool.name === name || Object.values(tool.names ?? {}).includes(name))
const { nextSteps, hintList } = hinting({ draw, find, open: (tool, given, runs) => choose(tool, given, runs) })
const declared = declaring({ draw, ask, tried, code, pretty })

function marks(tool) {
  const needs = (tool.permissions ?? []).map(each => `needs ${each}`), tags = (tool.tags ?? []).map(each => `#${each}`)
  const words = [tool.category, tool.responseTime, `v${tool.version}`, ...needs, ...tags]
  return draw('div', { class: 'marks' },
    draw('span', { class: 'pill accent' }, tool.source),
    words.map(each => draw('span', { class: 'pill' }, each)),
    tool.deprecated ? draw('span', { class: 'pill bad' }, 'deprecated') : null)
}

// Opens a tool with its example, or with given arguments; `runs` then runs it.
function choose(tool, given = null, runs = false) {
  chosen = tool
  listTools()
  snippets()
  const fields = form(tool.inputSchema)
  const raw = draw('textarea', { rows: '8', spellcheck: 'false', 'aria-label': 'Arguments as JSON' })
  let editing = 'form'
  const values = () => {
    if (editing === 'form') return fields.read()
    try { return JSON.parse(raw.value || '{}') } catch (error) { throw new Failure(`The arguments are not JSON: ${error.message}`) }
  }
  const switchTo = side => tried(async () => {
    const current = values()
    editing = side
    if (side === 'form') fields.fill(current)
    else raw.value = pretty(current)
  })()
  const example = tool.examples?.[0]
  if (given ?? example) fields.fill(given ?? example.params)
  const outcome = draw('div', { class: 'outcome', role: 'status', hidden: true })
  const button = draw('button', { type: 'submit' }, 'Run')
  const sides = tabs('Arguments', [['Form', fields.element, () => switchTo('form')], ['JSON', raw, () => switchTo('json')]])
  const question = draw('form', { class: 'ask', onsubmit: event => { event.preventDefault(); start() } },
    sides,
    draw('div', { class: 'actions' }, button, example && !given ? draw('span', { class: 'quiet' }, `Example: ${example.description}`) : null))
  const start = tried(async () => {
    const given = values()
    button.disabled = true
    const told = draw('span', {}, 'Running…'), bar = draw('progress', { 'aria-label': 'Progress' })
    outcome.replaceChildren(draw('div', { class: 'progress' }, bar, told))
    show(outcome)
    try {
      const once = () => run(tool.name, given, news => progress(bar, told, news))
      let result = await once()
      while (isStale(result.error)) {
        await freshSignIn()
        result = await once()
      }
      outcome.replaceChildren(...shown(result))
    } catch (error) {
      show(outcome, false)
      throw error
    } finally { button.disabled = false }
    refreshCalls()
  })
  const names = [...new Set([tool.name, ...Object.values(tool.names ?? {})])]
  at('tool').replaceChildren(
    draw('header', {}, draw('h3', { tabindex: '-1' }, tool.title ?? tool.name), draw('div', { class: 'names mono' }, names.join('  ·  ')), marks(tool)),
    draw('div', { class: 'description' }, paragraphs(tool.description)), question, outcome, declared(tool))
  if (given === null) return
  if (!holds(fields, given)) {
    // The form cannot express these arguments; the text can.
    editing = 'json'
    raw.value = pretty(given)
    sides.querySelectorAll('[role=tab]')[1].click()
  }
  at('tool').scrollIntoView({ block: 'start' })
  const focused = runs ? at('tool').querySelector('h3') : button
  focused.focus({ preventScroll: true })
  if (runs) start()
}

function holds(fields, given) {
  try {
    const values = fields.read()
    return Object.keys(given).every(name => JSON.stringify(values[name]) === JSON.stringify(given[name]))
  } catch { return false }
}

// Authors wrap their lines for an editor; blank lines and list items are what they mean.
function paragraphs(text) {
  return text.split(/\n\s*\n/).map(part => draw('p', {}, part.replace(/\s*\n(?!\s*(?:[-*•]|\d+[.)])\s)\s*/g, ' ')))
}

function progress(bar, told, news) {
  if (news.total) { bar.max = news.total; bar.value = news.done ?? 0 }
  if (news.message) told.textContent = news.message
}

function shown(result) {
  const { metadata, agentHints: hints, error } = result
  const head = draw('div', { class: 'marks' },
    draw('span', { class: error ? 'pill bad' : 'pill good' }, error ? error.code : 'Success'),
    draw('span', { class: 'pill' }, `${metadata.executionTime} ms`),
    metadata.cached ? draw('span', { class: 'pill' }, 'from the cache') : null)
  const said = draw('p', { class: 'said' }, error ? error.message : result.message)
  const main = error ? ['Error', code(pretty(error))] : ['Data', code(pretty(result.data ?? result.inputRequired ?? null))]
  const steps = nextSteps(result)
  return [head, said, ...(steps ? [steps] : []), tabs('Result', [main, ['Hints', hintList(hints)], ['Full response', code(pretty(result))]])]
}

// --- connecting ---

function snippets() {
  const key = freshKey ?? 'YOUR_KEY'
  const tool = chosen, given = tool?.examples?.[0]?.params ?? {}, name = tool?.name ?? 'local:get-datetime'
  const http = { mcpServers: { toolcrib: { type: 'http', url: `${origin}/mcp`, headers: { Authorization: `Bearer ${key}` } } } }
  const stdio = { mcpServers: { toolcrib: { command: 'toolcrib', args: ['stdio'] } } }
  const quoted = text => `'${text.replaceAll("'", `'\\''`)}'`
  const curl = `curl -s ${origin}/api/tools/execute \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d ${quoted(JSON.stringify({ name, arguments: given }))}`
  const python = `import anyio
from toolcrib import Crib

async def main() -> None:
    async with Crib.from_config("toolcrib.yaml") as crib:
        result = await crib.call("${name}", ${pythonic(given)})
        print(result.message, result.data)

anyio.run(main)`
  const cli = `export TOOLCRIB_URL=${origin}
export TOOLCRIB_KEY=${key}
toolcrib tools
toolcrib call ${name} ${quoted(JSON.stringify(given))}`
  at('key-note').replaceChildren(...(freshKey
    ? ['The snippets contain the key that you have just created; the page discards it when you leave.']
    : ['Replace YOUR_KEY with an API key. ', draw('a', { href: '#keys' }, 'Create one below'), ' and it is filled in here.']))
  at('snippets').replaceChildren(tabs('Clients', [
    ['MCP client', code(pretty(http))], ['MCP over stdio', code(pretty(stdio))], ['curl', code(curl)],
    ['Python', code(python)], ['Command line', code(cli)],
  ]))
}

function pythonic(value) {
  if (Array.isArray(value)) return `[${value.map(pythonic).join(', ')}]`
  if (value && typeof value === 'object') {
    return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${pythonic(each)}`).join(', ')}}`
  }
  return { null: 'None', true: 'True', false: 'False' }[value] ?? JSON.stringify(value)
}

// --- what runs, keys, calls ---

const moment = seconds => new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const clock = seconds => new Date(seconds * 1000).toLocaleTimeString()
function lasting(seconds) {
  const [size, unit] = seconds < 90 ? [1, 'second'] : seconds < 5400 ? [60, 'minute'] : seconds < 129600 ? [3600, 'hour'] : [86400, 'day']
  const count = Math.round(seconds / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

async function refreshStatus() {
  const status = await ask('/api/status')
  const up = status.sources.filter(each => each.state === 'up').length
  const counted = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`
  const sources = counted(status.sources.length, 'source')
  at('version').textContent = `v${status.version}`
  at('summary').textContent = `${counted(status.tools, 'tool')} from ${sources}, ${up === status.sources.length ? 'all' : up} up. `
    + `Running for ${lasting(status.uptime)}.`
  const told = each => [counted(each.tools, 'tool'), each.state.replace('_', ' '),
    ...(each.degraded ? ['degraded'] : []), ...(each.restarts ? [counted(each.restarts, 'restart')] : [])].join(', ')
  at('sources').replaceChildren(...status.sources.map(each => draw('div', { class: 'card', role: 'listitem', title: each.lastError },
    draw('span', { class: `dot ${each.state}` }), draw('strong', {}, each.id), draw('span', { class: 'quiet' }, told(each)),
    each.lastError && each.state !== 'up' ? draw('span', { class: 'fault' }, each.lastError) : null)))
  const warnings = [...status.warnings, ...status.withheld.map(each => `${each.name} is withheld: ${each.reason}`)]
  at('warnings').replaceChildren(...warnings.map(each => draw('li', {}, each)))
  show(at('warnings'), warnings.length > 0)
  if (at('key-home').childElementCount !== status.contexts.length) {
    at('key-home').replaceChildren(...status.contexts.map(each => draw('option', { selected: each === 'default' }, each)))
  }
}

async function refreshTools() {
  all = (await ask('/api/tools')).tools
  chosen = null
  if (all.length) choose(all.find(tool => tool.examples?.length) ?? all[0])
  else { listTools(); snippets() }
}

async function refreshKeys() {
  const { keys } = await ask('/api/keys')
  const ended = key => key.revoked ? 'revoked' : key.expires && key.expires * 1000 <= Date.now() ? 'expired' : ''
  at('key-rows').replaceChildren(...keys.map(key => draw('tr', { class: ended(key) ? 'gone' : '' },
    draw('td', {}, draw('b', {}, key.name)),
    draw('td', { class: 'wide' }, keyReach(key)),
    draw('td', {}, key.home), draw('td', {}, moment(key.created)),
    draw('td', { class: 'number' }, ended(key) || keyActions(key.name)))))
  if (!keys.length) emptyRow('key-rows', 5, 'No keys yet. The admin key is not listed here.')
}

function keyReach(key) {
  const acts = key.user ? [`acts for ${key.user}`] : key.actAs ? ['may act for users'] : []
  return [...key.permissions, ...acts].join(', ') || 'none'
}

function keyActions(name) {
  const path = `/api/keys/${encodeURIComponent(name)}`
  const change = (verb, method, where, kind) => draw('button', { type: 'button', class: kind, 'aria-label': `${verb} ${name}`,
    onclick: tried(async () => {
      if (!confirm(`${verb} ${name}? The key in use now stops working at once.`)) return
      const answer = await ask(where, { method })
      if (answer.key) reveal(answer)
      await refreshKeys()
    }) }, verb)
  return draw('div', { class: 'actions' },
    change('Rotate', 'POST', `${path}/rotate`, 'small'), change('Revoke', 'DELETE', path, 'small danger'))
}

function emptyRow(id, columns, text) {
  at(id).append(draw('tr', {}, draw('td', { class: 'quiet', colspan: String(columns) }, text)))
}

function reveal(made) {
  freshKey = made.key
  at('made').replaceChildren(draw('strong', {}, `The key ${made.name}. Store it now: it is not shown again.`), code(made.key))
  show(at('made'))
  snippets()
}

const createKey = tried(async () => {
  const permissions = at('key-permissions').value.split(/[\s,]+/).filter(Boolean)
  const body = { name: at('key-name').value, permissions, home: at('key-home').value, actAs: at('key-act').checked }
  reveal(await ask('/api/keys', { method: 'POST', body: JSON.stringify(body) }))
  at('key-form').reset()
  await refreshKeys()
})

async function refreshCalls() {
  const { calls } = await ask('/api/calls?limit=20')
  at('call-rows').replaceChildren(...calls.map(call => draw('tr', {},
    draw('td', { title: moment(call.at) }, clock(call.at)), draw('td', { class: 'mono' }, call.tool),
    draw('td', {}, call.user ?? call.caller), draw('td', {}, call.face),
    draw('td', {}, draw('span', { class: call.outcome === 'success' ? 'pill good' : 'pill bad' }, call.code ?? call.outcome),
      call.cached ? draw('span', { class: 'quiet' }, ' cached') : null),
    draw('td', { class: 'number' }, `${call.milliseconds.toFixed(1)} ms`))))
  if (!calls.length) emptyRow('call-rows', 6, 'Nothing yet. Run a tool above.')
}

// --- start ---

// A page of the gateway that a plain link cannot open, since only requests of the script carry the secret.
const openText = path => tried(async () => {
  const answer = await send(path)
  const address = URL.createObjectURL(new Blob([await answer.text()], { type: 'text/plain' }))
  open(address, '_blank', 'noopener')
})

// Polling pauses without user input for a while, so that the session can reach its idle timeout.
function poll() {
  let touched = Date.now()
  for (const kind of ['pointerdown', 'keydown', 'focus']) addEventListener(kind, () => { touched = Date.now() })
  setInterval(() => {
    if (document.hidden || Date.now() - touched > UNUSED_MS) return
    Promise.all([refreshCalls(), refreshStatus()]).then(() => { if (lost) content() }, complain)
  }, POLL_MS)
}

function onSubmit(id, work) {
  at(id).addEventListener('submit', event => { event.preventDefault(); work() })
}

async function inside() {
  for (const id of ['inside', 'nav', 'account']) show(at(id))
  at('endpoint').append(draw('span', { class: 'quiet' }, 'MCP'), draw('span', { class: 'mono' }, `${origin}/mcp`), copier(() => `${origin}/mcp`))
  at('search').addEventListener('input', tried(seek))
  onSubmit('key-form', createKey)
  onSubmit('fresh-form', () => signInWithKey(at('fresh-key').value.trim()).then(() => signedInAgain(), error => {
    // Inside the dialog: what is below it cannot be read.
    at('fresh-trouble').textContent = error.message
    show(at('fresh-trouble'))
  }))
  at('fresh-cancel').addEventListener('click', () => at('fresh').close())
  at('signout').addEventListener('click', tried(signOut))
  for (const link of document.querySelectorAll('a[data-text]')) {
    link.addEventListener('click', event => { event.preventDefault(); openText(link.getAttribute('href'))() })
  }
  watch({ onSignIn: () => signedInAgain(), onBadLink: () => complain(new Failure('This link was already used or has expired.')) })
  const refreshPeople = panels({ draw, ask, at, show, tried, emptyRow, moment })
  await tried(() => Promise.all([refreshStatus(), refreshTools(), refreshKeys(), refreshCalls(), refreshPeople()]))()
  poll()
}

function outside(badLink) {
  show(at('gate'))
  show(at('gate-note'), badLink)
  show(at('gate-ended'), location.hash === '#ended')
  const reload = () => location.replace('/')
  onSubmit('gate-form', tried(async () => { await signInWithKey(at('gate-key').value.trim()); reload() }))
  watch({ onSignIn: reload, onBadLink: () => show(at('gate-note')) })
}

const token = takeToken()
const badLink = token !== null && !await exchange(token)
secret() ? inside() : outside(badLink)
