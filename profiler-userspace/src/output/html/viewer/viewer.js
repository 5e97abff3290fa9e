// Puts everything together: what the user chose, what follows from that, and the address that keeps it.
//
// In: the page's data. Out: the page. A choice changes `state`, `refresh` computes samples, tree and sums again, and
// `show` draws them.

const VIEWS = ['flame', 'icicle', 'callers', 'sandwich', 'functions', 'chart', 'compare', 'source'];

// Views that are no graphs.
const LISTS = ['functions', 'compare', 'source'];

const $ = (id) => document.getElementById(id);

function startViewer(page) {
  const { header } = page;
  for (const profile of page.profiles) {
    profile.ways = ownerWays(profile);
    if (profile.byLine) {
      profile.byLine.ways = profile.ways;
    }
  }
  const state = {
    profile: 0, view: usualView(), group: 'name', color: '', order: header.order, focus: 0, query: '',
    frames: 'all', lanes: 'none', base: null, choice: everything(), isHeat: false, heatWay: '', isDownward: header.inverted,
  };
  // Values that follow from the state. `seen` is the profile with the frames that are asked for.
  let profile, seen, values, tree, sums;
  // Where in the time something is pointed at, or an empty text.
  let timeText = '';

  const graph = makeGraph({ scroller: $('graph'), canvas: $('canvas'), spacer: $('spacer') }, header.height, {
    pointed: describe,
    moved() {
      if (graph.pointed && graph.cursor) {
        tip.place(graph.cursor.x, graph.cursor.y);
      }
    },
    zoomed() {
      showZoomedTime();
      describe();
      report();
      writeAddress(true);
    },
  });
  const tip = makeTip($('tip'));
  const finder = makeFinder(graph);
  const table = makeTable({ head: $('functions-head'), scroller: $('functions-scroller'), body: $('functions-body') }, {
    chosen(frame) {
      state.focus = frame;
      setView('sandwich');
    },
    sorted() {},
  });
  const source = makeSource({
    select: $('source-function'), path: $('source-path'), head: $('source-head'), scroller: $('source-scroller'), body: $('source-body'),
  }, (frame) => {
    state.focus = frame;
    show([], true);
    source.reveal();
  });
  const time = makeTime({
    timeline: $('timeline'), heat: $('heat'), heatScroller: $('heat-scroller'), heatSpacer: $('heat-spacer'),
  }, {
    range: () => state.choice.range,
    selected(range, isStep) {
      state.choice.range = range;
      state.view = isCompared() ? 'compare' : state.view;
      refresh(null, isStep);
    },
    rowChosen(key) {
      state.choice[state.heatWay] = state.choice[state.heatWay] === key ? -1 : key;
      controls.set(state.heatWay, state.choice[state.heatWay]);
      refresh(null, true);
    },
    pointed: describeTime,
  });
  const controls = makeControls($('choices'), choose);

  function choose(name, value) {
    if (name === 'profile') {
      setProfile(Number(value));
    } else if (name === 'order') {
      setOrder(value);
      return;
    } else if (['group', 'color', 'frames', 'lanes'].includes(name)) {
      state[name] = value;
    } else {
      state.choice[name] = name === 'state' || name === 'measure' ? value : Number(value);
    }
    refresh(null, true);
  }

  function usualView() {
    return header.chart ? 'chart' : header.reversed ? 'callers' : header.inverted ? 'icicle' : 'flame';
  }

  // What colours tell unless asked: where threads ran and waited, which of it they did.
  function usualColor() {
    return page.profiles[state.profile].activity === 'both' ? 'state' : 'kind';
  }

  // Another event: owners and windows are others, so what was chosen of them goes.
  function setProfile(number) {
    state.profile = number;
    state.choice = everything();
    state.base = null;
    state.color = usualColor();
    state.focus = 0;
    profile = page.profiles[number];
    state.lanes = usualLanes(profile);
    state.frames = framesAs(profile, state.frames);
    if (state.group !== 'none' && profile.ways[state.group].labels.length === 0) {
      state.group = 'none';
    }
    if (state.view === 'chart' && profile.windows.length < 2) {
      state.view = 'flame';
    }
    showTexts();
    offerAll(controls, page, state);
    offerHeatMap();
  }

  function offerHeatMap() {
    const ways = WAYS.filter((way) => tellsApart(profile.ways[way]));
    const select = $('heat-way');
    select.replaceChildren();
    for (const way of ways) {
      addElement(select, 'option', '', WAY_LABELS[way]).value = way;
    }
    state.heatWay = ways.includes(state.heatWay) ? state.heatWay : ways[0] || '';
    select.value = state.heatWay;
    $('heat-map').parentElement.hidden = ways.length === 0;
    $('time').hidden = profile.windows.length < 2;
    $('view-chart').hidden = profile.windows.length < 2 && !header.chart;
  }

  const unit = () => (state.choice.measure === 'count' ? 'samples' : profile.unit);
  const shown = (weight) => weightText(weight, unit());

  // Computes everything again. What was zoomed stays, as far as it is still there. `isStep`: as of `show`.
  function refresh(path, isStep) {
    const kept = path || (state.view === 'chart' ? [] : pathTo(graph.zoom));
    if (state.frames === 'runtime') {
      profile.ofRuntimes = profile.ofRuntimes || runtimeProfile(profile);
    }
    seen = state.frames === 'runtime' ? profile.ofRuntimes : state.frames === 'lines' ? profile.byLine : profile;
    values = filterSamples(seen, state.choice);
    const way = state.group === 'none' ? null : profile.ways[state.group];
    tree = wholeTree(seen, values.inRange, way);
    sums = functionSums(tree, profile.frames.name.length);
    graph.frames = profile.frames;
    const shares = state.color === 'state' ? stateShares(way) : null;
    graph.colors = frameColors(profile.frames, state.color, profile.activity, shares).map(css);
    show(kept, isStep);
  }

  // How much of each function's weight is of which state.
  function stateShares(way) {
    return STATES.map((_, wanted) => {
      const part = values.inRange.map((value, i) => (seen.samples.state[i] === wanted ? value : 0));
      return functionSums(wholeTree(seen, part, way), profile.frames.name.length).total;
    });
  }

  // Whether there are two ranges, one behind the other.
  function isCompared() {
    const [base, range] = [state.base, state.choice.range];
    return base !== null && range !== null && (base[1] < range[0] || range[1] < base[0]);
  }

  function toggleComparison() {
    state.base = state.base === null ? state.choice.range : null;
    state.choice.range = null;
    refresh(null, true);
  }

  function showComparison() {
    const ranges = [state.base, state.choice.range];
    const compared = compareRanges(seen, values.always, ranges);
    const texts = ranges.map(([first, last]) => (
      clock(profile.windows[first][0]) + ' to ' + clock(profile.windows[last][1])
    ));
    showCompared($('compared'), compared, profile, texts, (frame) => {
      state.focus = frame;
      setView('sandwich');
    });
  }

  // Draws what was computed. `isStep`: the browser's Back is to undo it.
  function show(zoomPath, isStep) {
    if ((state.view === 'compare' && !isCompared()) || (state.view === 'source' && !hasSource(profile))) {
      state.view = usualView();
    }
    const isTable = state.view === 'functions';
    $('view-compare').hidden = !isCompared();
    $('compared').hidden = state.view !== 'compare';
    $('graph').hidden = LISTS.includes(state.view);
    $('view-source').hidden = !hasSource(profile);
    $('source').hidden = state.view !== 'source';
    $('functions').hidden = !isTable;
    for (const view of VIEWS) {
      $('view-' + view).setAttribute('aria-pressed', view === state.view);
    }
    if (state.view === 'sandwich' && (state.focus === 0 || sums.total[state.focus] === 0)) {
      state.focus = busiest();
    }
    finder.search(state.query, profile.frames);
    graph.show(partsOf(state.view));
    const zoom = findPath(zoomPath || []);
    if (zoom.node > 0) {
      graph.zoom = zoom;
      graph.draw();
      graph.reveal(zoom);
    }
    if (isTable) {
      showTable();
    }
    if (state.view === 'compare') {
      showComparison();
    }
    if (state.view === 'source') {
      showSource();
    }
    controls.set('order', isByWeight() ? 'weight' : 'name');
    showTime();
    showLegend();
    describe();
    report();
    writeAddress(isStep);
  }

  function partsOf(view) {
    const names = profile.frames.name;
    const ordered = isByWeight() ? (own) => byWeight(own, profile.frames) : (own) => own;
    switch (view) {
      case 'icicle': return [{ tree: ordered(tree), direction: 1 }];
      case 'chart': return chartsNow();
      case 'callers': return [{ tree: ordered(callersOf(tree, 0, names)), direction: 1 }];
      case 'sandwich': return [
        { tree: ordered(calleesOf(tree, state.focus, names)), direction: 1 },
        { tree: ordered(callersOf(tree, state.focus, names)), direction: -1 },
      ];
      default: return [{ tree: ordered(tree), direction: -1 }];
    }
  }

  // The flame graph is by name, which is easy to compare; others would be carpets.
  function isByWeight() {
    const isTime = ['chart', ...LISTS].includes(state.view);
    return !isTime && (state.order || (state.view === 'flame' ? 'name' : 'weight')) === 'weight';
  }

  // The zoomed frame stays, as far as views have paths.
  function setOrder(order) {
    const kept = pathTo(graph.zoom);
    state.order = order;
    show(kept);
  }

  // A chart for each lane, or one of all.
  function chartsNow() {
    const way = profile.ways[state.lanes];
    const range = state.choice.range;
    const direction = state.isDownward ? 1 : -1;
    const lanes = way ? chartLanes(seen, values.inRange, way, range) : [];
    if (lanes.length === 0) {
      const group = state.group === 'none' ? null : profile.ways[state.group];
      return [{ tree: chartTree(seen, values.inRange, group, range), direction }];
    }
    // The name of a lane stands above it, until it is turned over.
    return lanes.map((tree) => ({ tree, direction: state.isDownward === header.inverted ? 1 : -1, isLane: true }));
  }

  // The function where most of the time was spent.
  function busiest() {
    let best = 0;
    for (let i = 1; i < sums.self.length; i += 1) {
      best = sums.self[i] > sums.self[best] ? i : best;
    }
    return best || tree.frame[Math.min(1, tree.count - 1)];
  }

  function showTable() {
    table.show(profile.frames, sums, tree.total[0] || 1, shown, graph.hits);
  }

  // The source of the chosen function, or of the one where most of the time was spent whose source is there.
  function showSource() {
    const whole = wholeTree(profile, filterSamples(profile, state.choice).inRange, null);
    const functions = functionSums(whole, profile.frames.name.length);
    const all = functionsWithSource(profile, functions);
    const chosen = profile.functionOf[state.focus];
    const isThere = all.includes(chosen);
    state.focus = isThere ? chosen : all[0] || 0;
    const offered = all.slice(0, MOST_OFFERED);
    const share = (weight) => percent(weight, whole.total[0] || 1);
    const options = (isThere && !offered.includes(chosen) ? [...offered, chosen] : offered)
      .map((frame) => [frame, profile.frames.name[frame] + ' · ' + share(functions.self[frame])]);
    const file = profile.source.get(profile.frames.file[state.focus]) || { path: '', found_at: '', runs: [] };
    const lines = new Set();
    profile.functionOf.forEach((frame, i) => {
      if (frame === state.focus && profile.lineOf[i] > 0) {
        lines.add(profile.lineOf[i]);
      }
    });
    const sums = lineSums(profile, filterSamples(profile.byLine, state.choice).inRange).get(file.path) || new Map();
    const say = (weight) => ({
      share: share(weight), exact: weightText(weight, unit(), true), width: 100 * weight / (whole.total[0] || 1) + '%',
    });
    source.show({ options, frame: state.focus, file, sums, own: lines, say });
  }

  function showTime() {
    if (profile.windows.length < 2) {
      return;
    }
    $('heat-scroller').hidden = !state.isHeat || state.heatWay === '';
    const way = $('heat-scroller').hidden ? null : profile.ways[state.heatWay];
    const { total, rows } = sumsByWindow(seen, values.always, way);
    const list = rows.map((row, key) => ({ key, label: way.labels[key], sums: row, all: row.reduce((a, b) => a + b, 0) }));
    const used = list.filter((row) => row.all > 0).sort((a, b) => b.all - a.all || a.key - b.key);
    time.base = state.base;
    time.show(profile.windows, total, used, state.choice.range);
    $('compare').disabled = state.base === null && state.choice.range === null;
    $('compare').textContent = state.base === null ? 'Compare with another range' : 'End comparison';
    const range = state.choice.range;
    $('all-time').disabled = range === null;
    const from = profile.windows[range ? range[0] : 0][0];
    const to = profile.windows[range ? range[1] : profile.windows.length - 1][1];
    showZoomedTime();
    const isWaiting = state.base !== null && !isCompared();
    $('range').textContent = isWaiting ? 'Now drag the range to compare with, beside the marked one' : range
      ? clock(from) + ' to ' + clock(to) + ' of ' + clock(profile.windows[profile.windows.length - 1][1])
      : grouped(profile.windows.length) + ' windows in ' + clock(to - from) + ': drag to select a range';
  }

  // Marks on the timeline what part of it a chart shows.
  function showZoomedTime() {
    const { tree: own } = graph.parts[graph.zoom.part];
    const { node } = graph.zoom;
    const span = own.weight && node > 0 ? spanOfZoom(own, node) : null;
    time.mark(span ? [own.origin + span.begin, own.origin + span.end] : null);
  }

  function showLegend() {
    const legend = legendOf(tree, profile.frames, graph.colors, state.color);
    $('legend').replaceChildren();
    for (const [label, color] of legend) {
      const entry = addElement($('legend'), 'span', 'entry', '');
      addElement(entry, 'i', 'chip', '').style.background = color;
      entry.append(label);
    }
  }

  // All about a frame, in words.
  function facts({ part, node }) {
    const own = graph.parts[part].tree;
    const frame = own.frame[node];
    const all = tree.total[0];
    // Of a chart the widths are times.
    const weights = own.weight || own.total;
    const weight = weights[node];
    const facts = [weightText(weight, unit(), true), percent(weight, all) + ' of all'];
    if (own.weight) {
      const around = aroundFrame(own, node);
      facts.unshift(clock(around.start) + ' to ' + clock(around.end));
      facts.splice(2, 0, percent(weight, around.weight) + ' of what was counted then');
    }
    const zoomed = graph.zoom.part === part ? graph.zoom.node : 0;
    if (zoomed > 0) {
      facts.push(percent(Math.min(weight, weights[zoomed]), weights[zoomed]) + ' of zoomed');
    }
    if (own.self[node] > 0 && own.end[node] > node + 1) {
      facts.push(percent(own.self[node], all) + ' self');
    }
    const kind = kindLabel(profile.frames.kind[frame]);
    if (kind) {
      facts.push(kind);
    }
    if (profile.frames.module[frame] !== '' && profile.frames.module[frame] !== kind) {
      facts.push(profile.frames.module[frame]);
    }
    return { name: profile.frames.name[frame], numbers: facts.join(', ') };
  }

  // Text of the box beside the pointer.
  function tipLines(target) {
    const own = graph.parts[target.part].tree;
    const frame = own.frame[target.node];
    const all = tree.total[0];
    const weights = own.weight || own.total;
    const part = (weight) => shown(weight) + ', ' + percent(weight, all) + ' of all';
    const zoomed = graph.zoom.part === target.part ? graph.zoom.node : 0;
    const weight = weights[target.node];
    const ofZoomed = percent(Math.min(weight, weights[zoomed]), weights[zoomed]) + ' of zoomed';
    const { name, kind, module, file } = profile.frames;
    const lines = [['', name[frame]]];
    if (own.weight) {
      const around = aroundFrame(own, target.node);
      lines.push(['windows', clock(around.start) + ' to ' + clock(around.end)]);
    }
    // Of callers, what ends in a frame are roots.
    lines.push([state.view === 'callers' ? 'root' : 'self', part(own.self[target.node])]);
    lines.push(['total', part(weight) + (zoomed > 0 ? ', ' + ofZoomed : '')]);
    const known = [['kind', kindLabel(kind[frame]) || ''], ['module', module[frame]], ['file', file[frame] || '']];
    return lines.concat(known.filter(([, text]) => text !== ''));
  }

  function copyName() {
    const { part, node } = graph.pointed || graph.zoom;
    const name = profile.frames.name[graph.parts[part].tree.frame[node]];
    copyText(name, (sentence) => { $('found').textContent = sentence; });
  }

  function describe() {
    tip.show(graph.pointed && graph.cursor ? tipLines(graph.pointed) : []);
    if (graph.pointed && graph.cursor) {
      tip.place(graph.cursor.x, graph.cursor.y);
    }
    const target = graph.pointed || graph.zoom;
    const { name, numbers } = facts(target);
    const isHint = !graph.pointed && graph.zoom.node === 0 && !LISTS.includes(state.view);
    $('name').textContent = timeText || name;
    $('name').title = name;
    $('numbers').textContent = timeText ? '' : numbers + (isHint ? '. Click a frame to zoom in' : '');
    $('reset').disabled = graph.zoom.node === 0;
    const runtime = hasRuntimes(profile) ? 'I shows only what runtimes run, ' : '';
    const keys = 'Keys: arrows, Enter, Esc, /, n, N; i turns the graph over, o orders by weight or name, ' + runtime +
      's shows callers and callees, c copies the name, ' + (hasSource(profile) ? '1 to 8' : '1 to 7') + ' views.';
    const joined = graph.joined === 0 ? 'Every frame in view is drawn. '
      : grouped(graph.joined) + ' frames narrower than 0.5 px joined: zoom in or search to see them. ';
    const functions = grouped(table.count()) + ' functions. Click one for callers and callees.';
    const notes = {
      functions, compare: 'A row leads to callers and callees of its function.',
      source: 'Self and total of each line; those of the chosen function have a mark. Point at a frame and press 8 to choose it.',
    };
    $('note').textContent = notes[state.view] || joined + keys;
  }

  function describeTime(window, row) {
    timeText = '';
    if (window >= 0) {
      const [start, end, , , lost, busy] = profile.windows[window];
      const sum = row ? row.sums[window] : time.total[window];
      timeText = (row ? row.label + ', ' : '') + clock(start) + ' to ' + clock(end) + ': ' + shown(sum);
      timeText += lost > 0 ? ', ' + grouped(lost) + ' LOST' : '';
      timeText += busy > 0 && !row ? ', CPUs busy for ' + duration(busy) : '';
    }
    describe();
  }

  // A frame as the functions on the way to it, which other trees may have, too.
  function pathTo({ part, node }) {
    const own = graph.parts[part].tree;
    const path = [];
    for (let i = node; i > 0; i = own.parent[i]) {
      path.unshift(own.frame[i]);
    }
    return path;
  }

  // The frame at the end of a path, as far as there is one.
  function findPath(path) {
    const own = graph.parts[0].tree;
    let node = 0;
    for (const frame of path) {
      let child = node + 1;
      while (child < own.end[node] && own.frame[child] !== frame) {
        child = own.end[child];
      }
      if (child >= own.end[node]) {
        break;
      }
      node = child;
    }
    return { part: 0, node };
  }

  function search(text) {
    state.query = text;
    finder.search(text, profile.frames);
    if (state.view === 'functions') {
      showTable();
    }
    graph.draw();
    describe();
    report();
    writeAddress();
  }

  function report() {
    $('found').className = finder.isWrong() ? 'lost' : '';
    $('found').textContent = finder.report(tree);
  }

  function goToMatch(step) {
    if (!LISTS.includes(state.view)) {
      finder.go(step);
      report();
    }
  }

  function setView(view) {
    // In the others a path leads to something else, or to several frames.
    const hasPaths = (name) => ['flame', 'icicle', 'functions', 'source'].includes(name);
    const kept = hasPaths(state.view) ? pathTo(graph.zoom) : [];
    if (view === 'source' && state.view !== 'source') {
      chooseSource();
    }
    state.view = view;
    show(hasPaths(view) ? kept : [], true);
    if (view === 'source' && hasSource(profile)) {
      source.reveal();
    }
  }

  // The frame that is pointed at or zoomed to is the one whose source is wanted.
  function chooseSource() {
    const { part, node } = graph.pointed || graph.zoom;
    const frame = node > 0 && !LISTS.includes(state.view) ? graph.parts[part].tree.frame[node] : 0;
    state.focus = profile.source.has(profile.frames.file[frame]) ? frame : state.focus;
  }

  function turnOver() {
    if (state.view === 'chart') {
      state.isDownward = !state.isDownward;
      show();
    } else {
      setView(state.view === 'icicle' ? 'flame' : 'icicle');
    }
  }

  function showSandwich() {
    const { part, node } = graph.pointed || graph.zoom;
    state.focus = graph.parts[part].tree.frame[node];
    setView('sandwich');
  }

  const keys = {
    '/': () => { $('search').focus(); $('search').select(); },
    n: () => goToMatch(1),
    N: () => goToMatch(-1),
    i: turnOver,
    I: () => {
      if (hasRuntimes(profile)) {
        choose('frames', state.frames === 'runtime' ? frameChoices(profile)[0][0] : 'runtime');
        controls.set('frames', state.frames);
      }
    },
    o: () => setOrder(isByWeight() ? 'name' : 'weight'),
    s: showSandwich,
    c: copyName,
    Escape: () => graph.zoomTo({ part: 0, node: 0 }),
    Enter: () => graph.zoomTo(graph.pointed || graph.zoom),
    ArrowUp: () => graph.walk('up'),
    ArrowDown: () => graph.walk('down'),
    ArrowLeft: () => graph.walk('left'),
    ArrowRight: () => graph.walk('right'),
  };
  VIEWS.forEach((view, i) => {
    keys[i + 1] = () => $('view-' + view).click();
    $('view-' + view).addEventListener('click', () => setView(view));
  });
  const arrows = ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'];

  function pressed(event) {
    const isTyping = event.target.matches('input[type=search], select');
    if (event.target === $('timeline') && time.key(event)) {
      event.preventDefault();
      return;
    }
    if ((event.ctrlKey || event.metaKey) && event.key === 'f') {
      keys['/']();
      event.preventDefault();
      return;
    }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) {
      return;
    }
    // Arrows scroll the table, and Enter presses buttons.
    const isOnGraph = event.target === document.body || event.target === $('graph');
    if (['functions', 'source'].includes(state.view) ? arrows.includes(event.key) || event.key === 'Enter' : event.key === 'Enter' && !isOnGraph) {
      return;
    }
    keys[event.key]();
    event.preventDefault();
  }

  function pressedInSearch(event) {
    if (event.key === 'Enter') {
      goToMatch(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      $('search').value = '';
      search('');
      $('graph').focus();
    } else {
      return;
    }
    event.preventDefault();
  }

  function saveName(extension) {
    return (profile.title.replace(/[^\w.-]+/g, '-').slice(0, 60) || 'profile') + extension;
  }

  function savePicture() {
    const title = profile.title + (state.view === 'sandwich' ? ': ' + profile.frames.name[state.focus] : '');
    const say = (target) => { const { name, numbers } = facts(target); return name + ' (' + numbers + ')'; };
    saveFile(saveName('.svg'), 'image/svg+xml', pictureOf(graph, title, header.height, say));
  }

  // Stacks are those from the root, whatever the view; callers are no stacks of their own.
  function saveFolded() {
    const node = state.view === 'flame' || state.view === 'icicle' ? graph.zoom.node : 0;
    const focus = state.view === 'sandwich' ? state.focus : 0;
    saveFile(saveName('.folded'), 'text/plain', foldedText(node > 0 ? graph.parts[0].tree : tree, node, profile.frames, unit(), focus));
  }

  function listen() {
    let waiting = 0;
    $('search').addEventListener('input', () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => search($('search').value), 60);
    });
    $('search').addEventListener('keydown', pressedInSearch);
    document.addEventListener('keydown', pressed);
    window.addEventListener('popstate', () => refresh(readAddress()));
    $('previous').addEventListener('click', () => goToMatch(-1));
    $('next').addEventListener('click', () => goToMatch(1));
    $('reset').addEventListener('click', () => graph.zoomTo({ part: 0, node: 0 }));
    $('save-svg').addEventListener('click', savePicture);
    $('save-folded').addEventListener('click', saveFolded);
    $('compare').addEventListener('click', toggleComparison);
    $('all-time').addEventListener('click', () => { state.choice.range = null; refresh(null, true); });
    $('heat-map').addEventListener('change', () => { state.isHeat = $('heat-map').checked; showTime(); });
    $('heat-way').addEventListener('change', () => { state.heatWay = $('heat-way').value; showTime(); });
  }

  function writeAddress(isStep) {
    const usual = { view: usualView(), group: 'name', color: usualColor(), order: header.order, frames: frameChoices(profile)[0][0], lanes: usualLanes(profile), query: '' };
    const isWhole = state.view === 'flame' || state.view === 'icicle';
    keepAddress(addressOf(state, usual, isWhole ? pathTo(graph.zoom) : []), isStep);
  }

  function readAddress() {
    Object.assign(state, { view: usualView(), group: 'name', order: header.order });
    setProfile(profileIn(location.hash, page));
    const path = restoreState(location.hash, profile, state);
    $('search').value = state.query;
    offerAll(controls, page, state);
    return path;
  }

  function showTexts() {
    document.title = profile.title;
    $('title').textContent = profile.title;
    $('title').title = profile.title;
    $('subtitle').textContent = profile.subtitle;
    const facts = profile.notes.map((line) => /^(recorded|lost|LOST|left out): (.*)$/.exec(line)).filter(Boolean);
    $('balance').textContent = facts.map(([, label, text]) => label + ' ' + text).join('; ') || 'About the recording';
    $('balance').className = facts.some(([, label]) => label === 'LOST') ? 'lost' : '';
    $('notes').textContent = profile.notes.join('\n');
    $('recording').hidden = profile.notes.length === 0;
  }

  listen();
  const path = readAddress();
  graph.resize();
  refresh(path);
  document.documentElement.dataset.drawn = Math.round(performance.now());
}

function startFailed(error) {
  console.error(error);
  addElement(document.body, 'p', 'wrong', 'This page cannot be shown: ' + error.message);
}

if (typeof DecompressionStream === 'function') {
  unpack($('data').textContent).then(startViewer).catch(startFailed);
} else {
  startFailed(new Error('this browser is too old. Chrome 80, Firefox 113 and Safari 16.4 can show it'));
}
