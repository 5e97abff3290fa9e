// Which samples count.
//
// In: a profile, and what the user has chosen: keys of owners, a state, a range of windows, weights or firings.
// Out: for each sample its weight, or 0; sums by window and by owner for the timeline.

const STATES = ['running', 'runnable', 'blocked'];

// The choice that leaves everything in.
function everything() {
  const ways = Object.fromEntries(WAYS.map((way) => [way, -1]));
  return { ...ways, state: 'all', range: null, measure: 'weight' };
}

function statesOf(profile) {
  const seen = [false, false, false];
  for (let i = 0; i < profile.samples.count; i += 1) {
    seen[profile.samples.state[i]] = true;
  }
  return seen;
}

// For each state whether it was chosen.
function chosenStates(state) {
  switch (state) {
    case 'all': return [true, true, true];
    case 'off': return [false, true, true];
    default: return STATES.map((name) => name === state);
  }
}

// For each owner whether it was chosen.
function chosenOwners(profile, choice) {
  const chosen = new Uint8Array(profile.owners.count).fill(1);
  for (const way of WAYS) {
    if (choice[way] === -1) {
      continue;
    }
    const of = profile.ways[way].of;
    for (let i = 0; i < chosen.length; i += 1) {
      chosen[i] &= of[i] === choice[way] ? 1 : 0;
    }
  }
  return chosen;
}

// What each sample weighs whatever the range, and with it.
function filterSamples(profile, choice) {
  const samples = profile.samples;
  const values = choice.measure === 'count' ? samples.counts : samples.weights;
  const owners = chosenOwners(profile, choice);
  const states = chosenStates(choice.state);
  const [first, last] = choice.range || [0, Infinity];
  const always = new Float64Array(samples.count);
  const inRange = new Float64Array(samples.count);
  for (let i = 0; i < samples.count; i += 1) {
    if (owners[samples.owner[i]] && states[samples.state[i]]) {
      always[i] = values[i];
      if (samples.window[i] >= first && samples.window[i] <= last) {
        inRange[i] = values[i];
      }
    }
  }
  return { always, inRange };
}

// Sums by window, and by the keys of a way and window: `rows[key][window]`.
function sumsByWindow(profile, values, way) {
  const windows = profile.windows.length;
  const total = new Float64Array(windows);
  const rows = way ? way.labels.map(() => new Float64Array(windows)) : [];
  const samples = profile.samples;
  for (let i = 0; i < samples.count; i += 1) {
    if (values[i] > 0) {
      total[samples.window[i]] += values[i];
      const key = way ? way.of[samples.owner[i]] : -1;
      if (key !== -1) {
        rows[key][samples.window[i]] += values[i];
      }
    }
  }
  return { total, rows };
}
