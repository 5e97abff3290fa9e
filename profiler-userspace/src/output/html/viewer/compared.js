// Result of a comparison of two ranges, as a table.
//
// In: a comparison. Out: rows, the changes first, a click on which leads to the function.

function showCompared(box, compared, profile, texts, chosen) {
  box.replaceChildren();
  addElement(box, 'p', 'verdict', verdictText(compared.whole, profile.unit));
  const claim = compared.isWait ? 'Of waits nothing is claimed here: flame-bpf diff mixes their windows.'
    : compared.claims ? 'Shares of all in each range. Of changes beyond noise 5% are expected to be false.'
      : 'Nothing is claimed: a range needs ' + LEAST_WINDOWS + ' windows in which something was counted.';
  addElement(box, 'p', '', 'Before: ' + texts[0] + '. After: ' + texts[1] + '. ' + claim);
  for (const [part, label] of [['self', 'self'], ['total', 'total']]) {
    const table = addElement(box, 'table', 'compared ' + part, '');
    const head = addElement(addElement(table, 'thead', '', ''), 'tr', '', '');
    for (const text of ['before', 'after', 'points', 'between', label, 'function']) {
      addElement(head, 'th', text === 'function' ? 'name' : '', text);
    }
    const body = addElement(table, 'tbody', '', '');
    const rows = compared.functions[part].filter(({ verdict }) => verdict !== 'few samples');
    for (const row of rows) {
      addRow(body, row, profile.frames, chosen);
    }
    const few = compared.functions[part].length - rows.length;
    addElement(box, 'p', '', grouped(few) + ' more have fewer than ' + LEAST_SAMPLES + ' samples.');
  }
}

// Points of a hundred, with a sign; nothing has none.
function points(value) {
  const text = Math.abs(100 * value).toFixed(1);
  return (Number(text) === 0 ? '' : value < 0 ? '-' : '+') + text;
}

function addRow(body, { frame, values, change, low, high, verdict }, frames, chosen) {
  const line = addElement(body, 'tr', '', '');
  const isChange = ['more', 'new', 'less', 'gone'].includes(verdict);
  const color = isChange ? (change > 0 ? 'more' : 'less') : '';
  const between = verdict === 'no claim' ? '' : points(low) + ' to ' + points(high);
  const cells = [(100 * values[0]).toFixed(1) + '%', (100 * values[1]).toFixed(1) + '%', points(change), between, verdict];
  cells.forEach((text, i) => addElement(line, 'td', i === 2 ? color : '', text));
  const name = addElement(line, 'td', 'name', frames.name[frame]);
  name.title = frames.name[frame];
  line.addEventListener('click', () => chosen(frame));
}
