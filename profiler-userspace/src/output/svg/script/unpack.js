// Reads what `pack.rs` wrote.
//
// In: what was packed. Out: the graph as columns, one entry for each frame, in preorder.
// As in all parts: none of the three characters that markup is made of, so comparisons are made by `less`.

// Windows, of each of which there are the gap before it, its length and what was counted.
function spans(numbers) {
  const list = [];
  let end = 0;
  for (let i = 0; i !== numbers.length; i += 3) {
    const start = end + numbers[i];
    end = start + numbers[i + 1];
    list.push({ start: start, end: end, weight: numbers[i + 2] });
  }
  return list;
}

function unpack(buffer) {
  const { number, bytes, numbers } = numberReader(buffer);
  function colors(count) {
    const column = [];
    for (let i = 0; i !== count; i += 1) {
      column.push('rgb(' + bytes(3).join(',') + ')');
    }
    return column;
  }
  const texts = new TextDecoder().decode(bytes(number())).split('\n');
  const graph = {
    title: texts[0], subtitle: texts[1], noun: texts[2], balance: texts[3],
    lossy: number() === 1, inverted: number() === 1,
    reversed: number() === 1, asked: number(), height: number(), least: number() / 1e6, share: number() === 1,
    chart: number() === 1, hatched: number() === 1,
  };
  const notes = number();
  const entries = number();
  graph.legend = colors(entries).map(function (color, i) {
    return { label: texts[4 + i], color: color };
  });
  const names = number();
  graph.names = texts.slice(4 + entries, 4 + entries + names);
  graph.notes = texts.slice(4 + entries + names, 4 + entries + names + notes);
  graph.entry = numbers(names);
  graph.color = colors(names);
  const origins = [''].concat(texts.slice(4 + entries + names + notes));
  graph.origin = Array.from(numbers(names), function (origin) {
    return origins[origin].split('\t');
  });

  const count = number();
  const up = numbers(count - 1);
  const name = numbers(count - 1);
  graph.own = numbers(count);
  graph.name = new Uint32Array(count);
  let next = 1;
  for (let i = 1; i !== count; i += 1) {
    graph.name[i] = name[i - 1] === 0 ? next : name[i - 1] - 1;
    next = Math.max(next, graph.name[i] + 1);
  }
  // Rests of frames that are not in the file: of how many each is, and for each name its weight there.
  const rest = number() - 1;
  graph.rests = new Map();
  graph.unkept = 0;
  for (let i = 1; i !== count; i += 1) {
    if (graph.name[i] === rest) {
      graph.rests.set(i, number());
      graph.unkept += graph.rests.get(i);
    }
  }
  graph.hidden = numbers(rest === -1 ? 0 : names);
  graph.unsearched = rest === -1 ? 0 : number();
  const gaps = graph.chart ? numbers(count - 1) : null;
  graph.count = count;
  graph.parent = new Int32Array(count);
  graph.depth = new Uint32Array(count);
  // Where the frames end that are above one.
  graph.end = new Uint32Array(count);
  graph.total = Float64Array.from(graph.own);
  // What was counted: in a flame chart widths are times.
  graph.weight = graph.chart ? numbers(count) : graph.total;
  graph.windows = graph.chart ? spans(numbers(3 * number())) : [];
  // Lanes are what the root calls: all begin where it does.
  graph.lanes = graph.chart ? number() === 1 : false;
  // The weight of all that is left of a frame.
  graph.left = new Float64Array(count);
  graph.parent[0] = -1;
  for (let i = 1; i !== count; i += 1) {
    let parent = i - 1;
    for (let n = up[i - 1]; n !== 0; n -= 1) {
      parent = graph.parent[parent];
    }
    graph.parent[i] = parent;
    graph.depth[i] = graph.depth[parent] + 1;
  }
  for (let i = count - 1; i !== -1; i -= 1) {
    graph.end[i] = Math.max(graph.end[i], i + 1);
    if (i !== 0) {
      const parent = graph.parent[i];
      graph.end[parent] = Math.max(graph.end[parent], graph.end[i]);
      graph.total[parent] += graph.lanes ? (parent === 0 ? 0 : graph.total[i]) : graph.total[i];
      if (graph.chart) {
        graph.weight[parent] += graph.weight[i];
      }
    }
  }
  const filled = new Float64Array(count);
  for (let i = 1; i !== count; i += 1) {
    const parent = graph.parent[i];
    filled[parent] += gaps ? gaps[i - 1] : 0;
    graph.left[i] = graph.left[parent] + filled[parent];
    filled[parent] = graph.lanes ? (parent === 0 ? 0 : filled[parent] + graph.total[i]) : filled[parent] + graph.total[i];
  }
  // How many rows are below the lane of each frame.
  graph.below = new Uint32Array(count);
  let below = 0;
  for (let lane = 1; graph.lanes ? lane !== count : false; lane = graph.end[lane]) {
    let rows = 0;
    for (let i = lane; i !== graph.end[lane]; i += 1) {
      graph.below[i] = below;
      rows = Math.max(rows, graph.depth[i]);
    }
    below += rows;
  }
  return graph;
}
