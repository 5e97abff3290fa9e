// Processes, threads, CPUs, containers, pods and units: what samples can be filtered and grouped by.
//
// In: a profile's owners. Out: for each way to tell owners apart, its keys, what they read as, and which key each owner
// has. A way exists where the recording tells more than one apart.

// What owners are told apart by, and what that is called.
const WAYS = ['name', 'process', 'thread', 'cpu', 'container', 'pod', 'unit'];
const WAY_LABELS = { name: 'process name', process: 'process', thread: 'thread', cpu: 'CPU', container: 'container', pod: 'pod', unit: 'unit' };

// A thread's name, behind that of its process where that is another; the same as in `svg/chart/lanes.rs`.
function threadName(owners, i) {
  const [process, thread] = [owners.name[i], owners.thread[i]];
  return process && thread && process !== thread ? process + ' / ' + thread : thread || process || 'thread';
}

function ownerWays(profile) {
  const owners = profile.owners;
  const weights = new Float64Array(owners.count);
  for (let i = 0; i < profile.samples.count; i += 1) {
    weights[profile.samples.owner[i]] += profile.samples.weights[i];
  }
  const processNames = namesOfProcesses(owners, weights);
  const profilers = ownersOfProfiler(profile);
  const tell = {
    name: (i) => owners.name[i],
    process: (i) => (owners.pid[i] === null ? null : processNames.get(owners.pid[i]) + ' (' + owners.pid[i] + ')'),
    thread: (i) => (owners.tid[i] === null ? null : threadName(owners, i) + ' [tid ' + owners.tid[i] + ']'),
    cpu: (i) => (owners.cpu[i] === null ? null : 'CPU ' + owners.cpu[i]),
    container: (i) => owners.container[i],
    pod: (i) => owners.pod[i],
    unit: (i) => owners.unit[i],
  };
  const ways = {};
  for (const way of WAYS) {
    ways[way] = groupOwners(profile, tell[way], way === 'name' || way === 'process' ? KIND.process : KIND.label, profilers);
  }
  return ways;
}

// The owners of the profiler's own samples.
function ownersOfProfiler(profile) {
  const { samples, nodes, frames } = profile;
  const profilers = new Set();
  for (let i = 0; i < samples.count; i += 1) {
    if (frames.name[nodes.frame[samples.node[i]]] === PROFILER) {
      profilers.add(samples.owner[i]);
    }
  }
  return profilers;
}

// A process is called what its first thread is called, or else the one that weighs most.
function namesOfProcesses(owners, weights) {
  const best = new Map();
  for (let i = 0; i < owners.count; i += 1) {
    const rank = owners.tid[i] !== null && owners.tid[i] === owners.pid[i] ? Infinity : weights[i];
    const known = best.get(owners.pid[i]);
    if (!known || rank > known.rank) {
      best.set(owners.pid[i], { rank, name: owners.name[i] || 'process' });
    }
  }
  return new Map(Array.from(best, ([pid, { name }]) => [pid, name]));
}

// Each distinct answer is a key, in the order of names; -1 is for owners without one. Each key is a frame, too, so that
// graphs can be grouped by it.
function groupOwners(profile, tell, kind, profilers) {
  const answers = [];
  for (let i = 0; i < profile.owners.count; i += 1) {
    answers.push(tell(i));
  }
  const labels = Array.from(new Set(answers.filter((answer) => answer !== null)));
  labels.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const places = new Map(labels.map((label, i) => [label, i]));
  const others = new Set(answers.filter((answer, i) => !profilers.has(i)));
  const frames = labels.map((label) => {
    profile.frames.name.push(label);
    profile.frames.module.push(others.has(label) ? '' : ITSELF);
    profile.frames.kind.push(others.has(label) ? kind : KIND.mark);
    return profile.frames.name.length - 1;
  });
  return { labels, frames, of: Int32Array.from(answers, (answer) => (answer === null ? -1 : places.get(answer))) };
}

// Owners of the lanes of a flame chart unless asked: threads, or processes where threads are not told apart.
function usualLanes(profile) {
  return ['thread', 'process', 'name'].find((way) => profile.ways[way].labels.length > 0) || 'none';
}

// Whether owners can be filtered by this: whether it tells any two apart.
function tellsApart(way) {
  return way.labels.length > 1;
}
