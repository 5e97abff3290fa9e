// The address keeps the state behind `#`, so that a view can be kept and sent.
//
// In: the state, or an address. Out: the other. Frames and owners are numbers of this file; whatever an address says
// that does not fit is as if it were not there.

// Paths to deeper frames are not kept.
const MAX_KEPT_DEPTH = 300;

// The state as an address; what is usual is left out. `path` leads to what is zoomed.
function addressOf(state, usual, path) {
  const kept = new URLSearchParams();
  const keep = (name, value, usualValue) => {
    if (String(value) !== String(usualValue)) {
      kept.set(name, value);
    }
  };
  keep('event', state.profile, 0);
  for (const name of ['view', 'group', 'color', 'order', 'frames', 'lanes', 'query']) {
    keep(name, state[name], usual[name]);
  }
  keep('function', ['sandwich', 'source'].includes(state.view) ? state.focus : 0, 0);
  for (const [name, value] of Object.entries(everything())) {
    const own = state.choice[name];
    keep(name, name === 'range' && own ? own.join('-') : own, value);
  }
  keep('base', state.base ? state.base.join('-') : '', '');
  keep('zoom', path.length <= MAX_KEPT_DEPTH ? path.join('.') : '', '');
  return '#' + kept;
}

function keepAddress(address, isStep) {
  if (address === (location.hash || '#')) {
    return;
  }
  try {
    history[isStep ? 'pushState' : 'replaceState'](null, '', address);
  } catch (refused) {
    // A sandbox forbids it; the view is none the worse.
  }
}

// A number below `end`, or null.
function numberIn(text, end) {
  return /^\d+$/.test(text || '') && Number(text) < end ? Number(text) : null;
}

// Which profile an address names.
function profileIn(address, page) {
  return numberIn(new URLSearchParams(address.slice(1)).get('event'), page.profiles.length) || 0;
}

// Changes the state to what an address says of a profile. Returns the path to what was zoomed.
function restoreState(address, profile, state) {
  const kept = new URLSearchParams(address.slice(1));
  const oneOf = (name, values, usual) => (values.includes(kept.get(name)) ? kept.get(name) : usual);
  const frames = profile.frames.name.length;
  const choice = state.choice;
  const views = VIEWS.filter((view) => view !== 'chart' || profile.windows.length > 1);
  state.view = oneOf('view', views, state.view);
  state.group = oneOf('group', ['none', ...WAYS.filter((way) => profile.ways[way].labels.length > 0)], state.group);
  state.color = oneOf('color', ['kind', 'module', 'state'], state.color);
  state.order = oneOf('order', ['name', 'weight'], state.order);
  state.frames = framesAs(profile, kept.get('frames'));
  state.lanes = oneOf('lanes', ['none', ...WAYS], state.lanes);
  state.query = kept.get('query') || '';
  state.focus = numberIn(kept.get('function'), frames) || 0;
  choice.state = oneOf('state', ['all', 'off', ...STATES], 'all');
  choice.measure = oneOf('measure', ['weight', 'count'], 'weight');
  for (const way of WAYS) {
    const key = numberIn(kept.get(way), profile.ways[way].labels.length);
    choice[way] = key === null ? -1 : key;
  }
  const rangeIn = (text) => {
    const [first, last] = (text || '').split('-').map((part) => numberIn(part, profile.windows.length));
    return first !== null && last !== null && last !== undefined && first <= last ? [first, last] : null;
  };
  choice.range = rangeIn(kept.get('range'));
  state.base = rangeIn(kept.get('base'));
  const path = (kept.get('zoom') || '').split('.').map((text) => numberIn(text, frames));
  return path.filter((frame) => frame !== null);
}
