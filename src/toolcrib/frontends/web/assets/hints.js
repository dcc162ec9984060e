// The hints of a result: what can be done is a button that does it, the rest is text. What this draws with, how it finds
// a tool and how it opens one, the page hands over.

const MOST_STEPS = 5
const UNASKED = ['query', 'analysis']

function duration(seconds) {
  return seconds < 100 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`
}

let serial = 0

export function hinting({ draw, find, open }) {
  // A call of a tool with its arguments. Calls that change something are only filled in: their Run button is pressed by hand.
  function callStep(action, tool) {
    const { arguments: given, repair, after } = action.data
    const runs = UNASKED.includes(tool.category), id = `step-${++serial}`
    const verb = runs ? 'Run' : 'Fill in', what = tool.title ?? tool.name
    const label = draw('span', {}, `${verb} ${what}${after > 0 ? ' again' : repair ? ' with corrected arguments' : ''}`)
    const wait = draw('span', { class: 'wait', 'aria-hidden': 'true' })
    const button = draw('button', { type: 'button', class: 'step', 'aria-describedby': id, onclick: () => open(tool, given, runs) }, label, wait)
    if (after > 0) countDown(button, wait, after)
    const note = runs ? null : 'This call may change something: check it, then press Run.'
    return draw('li', {}, button, draw('div', { id },
      [action.description, note].filter(Boolean).map(text => draw('p', { class: 'quiet' }, text)),
      draw('code', { class: 'given' }, JSON.stringify(given))))
  }

  function countDown(button, wait, seconds) {
    const end = performance.now() + seconds * 1000
    button.disabled = true
    const tick = () => {
      const left = (end - performance.now()) / 1000
      button.disabled = left > 0
      wait.textContent = left > 0 ? ` in ${duration(left)}` : ''
      // Whoever has opened another result meanwhile does not wait for this one.
      if (left > 0) setTimeout(() => { if (button.isConnected) tick() }, Math.min(left * 1000, 1000))
    }
    tick()
  }

  function requestStep(action, { method, path, body }) {
    return draw('li', {}, draw('p', {}, action.description ?? 'Send this request first.'),
      draw('code', { class: 'given' }, `${method} ${path}`), body === undefined || body === null ? null : draw('code', { class: 'given' }, JSON.stringify(body)))
  }

  function step(action, failed) {
    const data = action.data ?? {}
    if (data.request) return requestStep(action, data.request)
    const tool = typeof data.tool === 'string' && data.arguments ? find(data.tool) : null
    if (tool) return callStep(action, tool)
    return failed && !data.tool && action.description ? draw('li', {}, draw('p', {}, action.description)) : null
  }

  // What to do next; null if there is nothing to do.
  function nextSteps(result) {
    const hints = result.agentHints ?? {}, failed = Boolean(result.error)
    const steps = (hints.suggestedNextActions ?? []).map(action => step(action, failed)).filter(Boolean).slice(0, MOST_STEPS)
    const warnings = (hints.warnings ?? []).map(each => draw('li', { class: 'notice' }, [each.message, each.suggestedFix].filter(Boolean).join(' ')))
    if (!steps.length && !warnings.length) return null
    const id = `steps-${++serial}`
    return draw('section', { class: 'steps', 'aria-labelledby': id }, draw('h4', { id }, 'Next steps'), draw('ul', {}, warnings, steps))
  }

  function hintList(hints) {
    const words = value => {
      if (Array.isArray(value)) return value.map(words).join('; ')
      if (typeof value !== 'object' || value === null) return String(value)
      const told = value.description ?? value.message ?? value.action ?? value.label
      return told ?? Object.entries(value).map(([key, each]) => `${key} ${words(each)}`).join(', ')
    }
    const filled = Object.entries(hints).filter(([, value]) => !Array.isArray(value) || value.length)
    return draw('dl', { class: 'hints' }, filled.flatMap(([name, value]) => {
      const label = name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
      return [draw('dt', {}, label), draw('dd', {}, words(value))]
    }))
  }

  return { nextSteps, hintList }
}
