// The source of a function, with what was counted in each line.
//
// In: files of source, sums of lines. Out: rows, of which only those in view are elements; a choice of functions.

const SOURCE_ROW_HEIGHT = 18;

// So many functions are offered; all others are chosen in other views.
const MOST_OFFERED = 400;

// Whether a profile shows source.
const hasSource = (profile) => profile.source.size > 0;

function makeSource(elements, chosen) {
  const { select, path, head, scroller, body } = elements;
  let rows = [];
  let format = null;

  select.addEventListener('change', () => chosen(Number(select.value)));
  ['Self', 'Total', 'Line', 'Source'].forEach((label) => {
    addElement(head, 'span', 'cell', label).setAttribute('role', 'columnheader');
  });

  // `options` are frames and texts. `own` are the lines of the function itself.
  function show({ options, frame, file, sums, own, say }) {
    select.replaceChildren();
    for (const [value, text] of options) {
      addElement(select, 'option', '', text).value = value;
    }
    select.value = frame;
    const isOther = file.found_at !== file.path;
    path.textContent = file.found_at + (isOther ? ', for ' + file.path : '') +
      (file.newer ? '. Written after the recording began: lines may be others' : '');
    path.className = file.newer ? 'lost' : '';
    rows = [];
    let behind = 1;
    for (const [first, lines] of file.runs) {
      if (first > behind) {
        rows.push(null);
      }
      lines.forEach((text, i) => {
        rows.push({ line: first + i, text, sum: sums.get(first + i), isOwn: own.has(first + i) });
      });
      behind = first + lines.length;
    }
    format = say;
    body.style.height = rows.length * SOURCE_ROW_HEIGHT + 'px';
    scroller.setAttribute('aria-rowcount', rows.length);
    draw();
  }

  // Shows the line of the function that weighs most.
  function reveal() {
    let best = -1;
    rows.forEach((row, i) => {
      if (row === null || !row.isOwn || !row.sum) {
        return;
      }
      const most = best === -1 ? { self: -1, total: -1 } : rows[best].sum;
      const isMore = row.sum.self > most.self || (row.sum.self === most.self && row.sum.total > most.total);
      best = isMore ? i : best;
    });
    scroller.scrollTop = Math.max(0, best) * SOURCE_ROW_HEIGHT - scroller.clientHeight / 3;
    draw();
  }

  function draw() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / SOURCE_ROW_HEIGHT) - 4);
    const last = Math.min(rows.length, first + Math.ceil(scroller.clientHeight / SOURCE_ROW_HEIGHT) + 8);
    const seen = [];
    for (let place = first; place < last; place += 1) {
      seen.push(element(rows[place], place));
    }
    body.replaceChildren(...seen);
  }

  function element(row, place) {
    const line = document.createElement('div');
    line.className = 'row' + (row === null ? ' gap' : row.isOwn ? ' own' : '');
    line.setAttribute('role', 'row');
    line.setAttribute('aria-rowindex', place + 1);
    line.style.top = place * SOURCE_ROW_HEIGHT + 'px';
    if (row === null) {
      addElement(line, 'span', 'cell', '⋯');
      return line;
    }
    for (const part of ['self', 'total']) {
      const weight = row.sum ? row.sum[part] : 0;
      const cell = addElement(line, 'span', 'cell ' + part, weight > 0 ? format(weight).share : '');
      cell.title = weight > 0 ? format(weight).exact : '';
      if (weight > 0) {
        addElement(cell, 'i', 'bar', '').style.width = format(weight).width;
      }
    }
    addElement(line, 'span', 'cell number', String(row.line));
    addElement(line, 'code', 'cell', row.text).title = row.text;
    return line;
  }

  scroller.addEventListener('scroll', draw, { passive: true });
  new ResizeObserver(draw).observe(scroller);
  return { show, reveal };
}

// The functions whose source is there, those with most weight of their own first.
function functionsWithSource(profile, sums) {
  const frames = new Set();
  profile.lineOf.forEach((line, i) => {
    if (line > 0 && profile.source.has(profile.frames.file[i])) {
      frames.add(profile.functionOf[i]);
    }
  });
  const list = Array.from(frames).filter((frame) => sums.total[frame] > 0);
  return list.sort((a, b) => sums.self[b] - sums.self[a] || sums.total[b] - sums.total[a] || a - b);
}
