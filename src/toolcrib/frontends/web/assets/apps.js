// The panels of apps and of users. What they draw with, and how they ask, the page hands over.

const SOME = 50

export function panels({ draw, ask, at, show, tried, emptyRow, moment }) {
  const pill = (text, kind = '') => draw('span', { class: `pill ${kind}` }, text)
  const cell = (...content) => draw('td', {}, content)
  const wide = (...content) => draw('td', { class: 'wide' }, content)

  function needs(hardware) {
    const said = hardware.map(each => each.type.toLowerCase() + (each.level === 'OPTIONAL' ? ' (optional)' : ''))
    return said.join(', ') || 'nothing'
  }

  function appRow(app) {
    return draw('tr', {},
      wide(draw('b', {}, app.name), draw('div', { class: 'quiet mono' }, app.packageName)),
      wide(draw('span', { class: 'mono' }, app.tools.join(', ') || 'none')),
      cell(app.appType.replace('_', ' ')), wide(needs(app.hardwareRequirements)),
      cell(app.owner ?? ''), draw('td', { class: 'number' }, String(app.version)))
  }

  // --- users: a row each, and under the one that is chosen all there is to know ---

  let chosen = null

  function userRow(user) {
    const open = user.id === chosen?.id
    const more = draw('button', { type: 'button', class: 'small', 'aria-expanded': String(open), 'aria-label': `Details of ${user.id}`,
      onclick: tried(() => choose(open ? null : user.id)) }, open ? 'Hide' : 'Details')
    const row = draw('tr', {}, cell(draw('b', {}, user.id)),
      cell(user.active ? pill('here', 'good') : draw('span', { class: 'quiet' }, 'away')),
      draw('td', { class: 'number' }, String(user.apps.length)), cell(user.language ?? ''), cell(moment(user.created)),
      draw('td', { class: 'number' }, more))
    return open ? [row, draw('tr', { class: 'inside' }, draw('td', { colspan: '6' }, details(chosen)))] : [row]
  }

  function details(user) {
    const language = user.session?.language ?? user.language
    const facts = [
      ['session', user.session ? `since ${moment(user.session.startedAt)}` : 'none'],
      ['device', user.device ? `${user.device.model}, with ${user.device.has.join(', ').toLowerCase() || 'no hardware'}` : 'none'],
      ...(language ? [['language', language]] : []),
      ['switched off', user.disabled.join(', ') || 'nothing'],
    ]
    return [
      draw('dl', { class: 'hints' }, facts.flatMap(([name, value]) => [draw('dt', {}, name), draw('dd', {}, value)])),
      user.apps.length ? draw('ul', { class: 'installed' }, user.apps.map(installed)) : draw('p', { class: 'quiet' }, 'No apps installed.'),
    ]
  }

  function installed(app) {
    const { isCompatible, message, warnings, missingOptional } = app.compatibility
    const lacking = missingOptional.length ? `works without ${needs(missingOptional.map(each => ({ type: each.type })))}` : null
    const why = [message, ...warnings, lacking, app.running.error].filter(Boolean).join(' ')
    return draw('li', {}, draw('b', {}, app.name), pill(app.running.state.replace('_', ' '), app.running.state === 'running' ? 'good' : ''),
      isCompatible ? pill('compatible', 'good') : pill('not compatible', 'bad'), app.disabled ? pill('switched off', 'bad') : null,
      why ? draw('span', { class: 'quiet' }, why) : null)
  }

  async function choose(id) {
    chosen = id === null ? null : await ask(`/api/users/${encodeURIComponent(id)}`)
    users.redraw()
  }

  // --- tables that grow: the first rows, and a button for more ---

  function growing(name, columns, row, key, none) {
    let known = []
    const rows = at(`${name}-rows`), button = at(`${name}-more`)
    const page = after => ask(`/api/${name}s?limit=${SOME}${after === undefined ? '' : `&after=${encodeURIComponent(after)}`}`)
    const redraw = () => {
      rows.replaceChildren(...known.flatMap(each => row(each)))
      if (!known.length) emptyRow(`${name}-rows`, columns, none)
    }
    const take = (before, found) => {
      known = [...before, ...found]
      show(button, found.length === SOME)
      redraw()
    }
    button.addEventListener('click', tried(async () => take(known, (await page(known.at(-1)[key]))[`${name}s`])))
    return { redraw, refresh: async () => take([], (await page())[`${name}s`]) }
  }

  const apps = growing('app', 6, appRow, 'packageName', 'No apps yet. PUT /api/apps/{package} registers one.')
  const users = growing('user', 6, userRow, 'id', 'No users yet. The first session or install creates a user.')
  return () => Promise.all([apps.refresh(), users.refresh()])
}
