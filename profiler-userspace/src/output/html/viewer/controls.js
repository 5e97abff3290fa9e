// The bar of choices: views, what is counted, whose it is, how it is coloured. A choice is offered only where the data
// has more than one answer.
//
// In: a profile. Out: elements, and `changed` with a name and a value when the user chooses.

function makeControls(parent, changed) {
  const selects = {};

  // Offers a choice between `[value, text]`; nothing if there is nothing to choose.
  function offer(name, label, options, value) {
    const known = selects[name];
    if (known) {
      known.parentElement.remove();
      delete selects[name];
    }
    if (options.length < 2) {
      return;
    }
    const box = addElement(parent, 'label', 'choice', label + ' ');
    const select = addElement(box, 'select', '', '');
    select.id = 'choose-' + name;
    for (const [key, text] of options) {
      addElement(select, 'option', '', text).value = String(key);
    }
    select.value = String(value);
    select.addEventListener('change', () => changed(name, select.value));
    selects[name] = select;
  }

  function set(name, value) {
    if (selects[name]) {
      selects[name].value = String(value);
    }
  }

  return { offer, set, has: (name) => name in selects };
}

// Which frames there may be; the first choice is the usual one.
function frameChoices(profile) {
  const lines = profile.byLine ? [['all', 'functions'], ['lines', 'lines']] : [['all', 'all']];
  const choices = profile.showsLines ? lines.reverse() : lines;
  return hasRuntimes(profile) ? [...choices, ['runtime', 'runtime only']] : choices;
}

// The choice of frames that a profile has, as far as it can be what was wanted.
function framesAs(profile, wanted) {
  const choices = frameChoices(profile).map(([choice]) => choice);
  return choices.includes(wanted) ? wanted : choices[0];
}

// The choices that a profile has.
function offerAll(controls, page, state) {
  const profile = page.profiles[state.profile];
  const isTime = profile.unit === 'nanoseconds';
  controls.offer('profile', 'Event', page.profiles.map((each, i) => [i, eventName(each)]), state.profile);
  const measures = [['weight', isTime ? 'time' : profile.unit], ['count', 'samples']];
  // Samples are their own count.
  const isCounted = profile.unit === 'samples' || profile.samples.counts.every((count, i) => count === profile.samples.weights[i]);
  controls.offer('measure', 'Count', isCounted ? [] : measures, state.choice.measure);
  const seen = statesOf(profile);
  const states = [
    ['all', 'on and off CPU', true], ['running', 'on CPU', seen[0]], ['off', 'off CPU', seen[1] && seen[2]],
    ['runnable', 'waiting for a CPU', seen[1]], ['blocked', 'blocked', seen[2]],
  ];
  const isMixed = seen.filter(Boolean).length > 1;
  controls.offer('state', 'State', isMixed ? states.filter(([, , isSeen]) => isSeen) : [], state.choice.state);
  const ways = WAYS.filter((way) => tellsApart(profile.ways[way]));
  for (const way of ways) {
    const label = WAY_LABELS[way][0].toUpperCase() + WAY_LABELS[way].slice(1);
    controls.offer(way, label, ownerOptions(profile, way), state.choice[way]);
  }
  const groups = WAYS.filter((way) => profile.ways[way].labels.length > 0).map((way) => [way, WAY_LABELS[way]]);
  controls.offer('group', 'Group by', groups.length > 0 ? [['none', 'nothing'], ...groups] : [], state.group);
  controls.offer('frames', 'Frames', frameChoices(profile), state.frames);
  controls.offer('order', 'Order by', [['name', 'name'], ['weight', 'weight']], state.order || 'name');
  const lanes = groups.length > 0 && profile.windows.length > 1 ? [['none', 'none'], ...groups] : [];
  controls.offer('lanes', 'Lanes of chart', lanes, state.lanes);
  const hasModules = new Set(profile.frames.module).size > 2;
  const colors = [['kind', 'kind', true], ['module', 'module', hasModules], ['state', 'state', isMixed]];
  controls.offer('color', 'Colour by', colors.filter(([, , has]) => has), state.color);
}

function eventName(profile) {
  if (profile.name !== '') {
    return profile.name;
  }
  const names = { running: 'on-CPU', waiting: 'off-CPU', both: 'on- and off-CPU' };
  return profile.unit === 'nanoseconds' ? names[profile.activity] + ' time' : profile.unit;
}

// Keys of owners with their shares, the largest first.
function ownerOptions(profile, name) {
  const way = profile.ways[name];
  const sums = new Float64Array(way.labels.length);
  let all = 0;
  for (let i = 0; i < profile.samples.count; i += 1) {
    const key = way.of[profile.samples.owner[i]];
    all += profile.samples.weights[i];
    if (key !== -1) {
      sums[key] += profile.samples.weights[i];
    }
  }
  const keys = Array.from(sums.keys());
  if (name !== 'cpu') {
    keys.sort((a, b) => sums[b] - sums[a] || a - b);
  }
  return [[-1, 'all ' + grouped(keys.length)], ...keys.map((key) => [key, way.labels[key] + ' · ' + percent(sums[key], all)])];
}
