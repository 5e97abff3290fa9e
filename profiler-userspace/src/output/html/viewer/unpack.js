// Reads what `packed.rs` wrote.
//
// In: the text of the data element. Out: the page's data: a header and for each profile frames, nodes, owners, windows
// and samples, as arrays of equal length.

// What a frame is; the numbers are those of `calls.rs`.
const KIND = {
  root: 0, process: 1, label: 2, user: 3, jit: 4, inlined: 5, kernel: 6, mark: 7, ran: 8, runnable: 9, blocked: 10,
  // The first of interpreted functions, whose runtimes the header lists.
  interpreted: 11,
};

// The name of frames that stand for those that are not in the file one by one.
const NARROW = '[narrow frames]';

// The only frame of the profiler's own stacks.
const PROFILER = '[profiler]';
// The module of its process, which comes last at the root.
const ITSELF = 'the profiler itself';

const isMark = (kind) => kind >= KIND.mark && kind < KIND.interpreted;

// What ends a frame's name in folded text, as in `fold.rs`; those of runtimes' functions are added from the header.
const SUFFIXES = { [KIND.kernel]: '_[k]', [KIND.jit]: '_[j]', [KIND.inlined]: '_[i]' };

async function unpack(text) {
  const reader = numberReader(await inflate(text));
  const header = JSON.parse(new TextDecoder().decode(reader.bytes(reader.number())));
  header.runtimes.forEach((short, i) => {
    SUFFIXES[KIND.interpreted + i] = '_[' + short + ']';
  });
  const profiles = header.profiles.map((section) => unpackProfile(section, header.names, reader));
  return { header, profiles };
}

function unpackProfile(section, names, reader) {
  const columns = {};
  for (const [name, count] of section.columns) {
    columns[name] = reader.numbers(count);
  }
  const profile = {
    name: section.name,
    title: section.title,
    subtitle: section.subtitle || '',
    notes: section.notes,
    unit: section.unit,
    activity: section.activity,
    period: section.period_ns,
    duration: section.duration_ns,
    // Begin, end, firings, how many of them were filtered and lost, and how long CPUs were busy.
    windows: section.windows,
  };
  // Frame 0 is the root, which no column mentions. Owners add frames later. `hidden` is the weight in rests.
  profile.frames = { name: ['all'], module: [''], file: [''], kind: [KIND.root], hidden: [0] };
  for (let i = 0; i < columns.frame_name.length; i += 1) {
    profile.frames.name.push(names[columns.frame_name[i]]);
    profile.frames.module.push(names[columns.frame_module[i]]);
    profile.frames.file.push(names[columns.frame_file[i]]);
    profile.frames.kind.push(columns.frame_kind[i]);
    profile.frames.hidden.push(columns.frame_hidden[i]);
  }
  // What samples without any frame are shown as.
  profile.frames.noStack = profile.frames.name.length;
  profile.frames.name.push('[no stack]');
  profile.frames.module.push('');
  profile.frames.file.push('');
  profile.frames.kind.push(KIND.mark);
  profile.frames.hidden.push(0);
  profile.nodes = unpackNodes(columns.node_up, columns.node_frame);
  profile.owners = unpackOwners(columns, names);
  profile.samples = unpackSamples(columns);
  // Whether lines are frames of their own unless the reader chooses.
  profile.showsLines = section.lines;
  profile.source = new Map((section.source || []).map((file) => [file.path, file]));
  return columns.line_frame ? withFunctions(profile, columns) : profile;
}

// Nodes in preorder. Node 0 is the root.
function unpackNodes(up, frames) {
  const count = up.length + 1;
  const parent = new Int32Array(count);
  const frame = new Uint32Array(count);
  parent[0] = -1;
  for (let i = 1; i < count; i += 1) {
    let above = i - 1;
    for (let n = up[i - 1]; n > 0; n -= 1) {
      above = parent[above];
    }
    parent[i] = above;
    frame[i] = frames[i - 1] + 1;
  }
  return { count, parent, frame };
}

function unpackOwners(columns, names) {
  const known = (column) => Array.from(column, (value) => (value > 0 ? value - 1 : null));
  const named = (column) => known(column).map((name) => (name === null ? null : names[name]));
  return {
    count: columns.owner_name.length,
    name: named(columns.owner_name),
    thread: named(columns.owner_thread),
    container: named(columns.owner_container),
    pod: named(columns.owner_pod),
    unit: named(columns.owner_unit),
    pid: known(columns.owner_pid),
    tid: known(columns.owner_tid),
    cpu: known(columns.owner_cpu),
  };
}

// Samples, by node.
function unpackSamples(columns) {
  const node = columns.sample_node;
  for (let i = 1; i < node.length; i += 1) {
    node[i] += node[i - 1];
  }
  return {
    count: node.length,
    node: Uint32Array.from(node),
    owner: Uint32Array.from(columns.sample_owner),
    state: Uint8Array.from(columns.sample_state),
    window: Uint32Array.from(columns.sample_window),
    counts: columns.sample_count,
    weights: columns.sample_weight,
  };
}
