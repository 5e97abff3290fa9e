// The table of functions: self and total, what they are in; sorted by any column.
//
// In: sums of functions. Out: rows. Only those in view are elements, so there may be any number.

const ROW_HEIGHT = 24;
// Name, label, whether the largest comes first.
const COLUMNS = [
  ['self', 'Self', true], ['total', 'Total', true], ['name', 'Function', false], ['module', 'Module', false],
];

function makeTable(elements, events) {
  const { head, scroller, body } = elements;
  const table = { sort: 'self', isReversed: false };
  let frames = null;
  let sums = null;
  let all = 1;
  let format = String;
  let hits = null;
  let order = [];
  const buttons = COLUMNS.map(([column, label]) => {
    const cell = addElement(head, 'span', 'cell ' + column, '');
    cell.setAttribute('role', 'columnheader');
    const button = addElement(cell, 'button', '', label);
    button.type = 'button';
    button.addEventListener('click', () => sortBy(column));
    return cell;
  });

  function sortBy(column) {
    table.isReversed = table.sort === column && !table.isReversed;
    table.sort = column;
    arrange();
    events.sorted();
  }

  function arrange() {
    const { name, module } = frames;
    const text = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    const compare = {
      self: (a, b) => sums.self[b] - sums.self[a] || sums.total[b] - sums.total[a],
      total: (a, b) => sums.total[b] - sums.total[a] || sums.self[b] - sums.self[a],
      name: (a, b) => text(name[a], name[b]),
      module: (a, b) => text(module[a], module[b]) || sums.self[b] - sums.self[a],
    }[table.sort];
    order = [];
    for (let i = 1; i < name.length; i += 1) {
      const isFunction = frames.kind[i] !== KIND.process && frames.kind[i] !== KIND.label;
      if (sums.total[i] > 0 && isFunction && (!hits || hits[i] === 1)) {
        order.push(i);
      }
    }
    order.sort((a, b) => compare(a, b) || text(name[a], name[b]) || a - b);
    if (table.isReversed) {
      order.reverse();
    }
    COLUMNS.forEach(([column, , isLargestFirst], i) => {
      const isUp = isLargestFirst === table.isReversed;
      buttons[i].setAttribute('aria-sort', table.sort !== column ? 'none' : isUp ? 'ascending' : 'descending');
    });
    body.style.height = order.length * ROW_HEIGHT + 'px';
    scroller.setAttribute('aria-rowcount', order.length);
    draw();
  }

  function draw() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW_HEIGHT) - 4);
    const last = Math.min(order.length, first + Math.ceil(scroller.clientHeight / ROW_HEIGHT) + 8);
    const rows = [];
    for (let place = first; place < last; place += 1) {
      rows.push(row(place));
    }
    body.replaceChildren(...rows);
  }

  function row(place) {
    const i = order[place];
    const element = document.createElement('div');
    element.className = 'row';
    element.setAttribute('role', 'row');
    element.setAttribute('aria-rowindex', place + 1);
    element.style.top = place * ROW_HEIGHT + 'px';
    for (const column of ['self', 'total']) {
      const cell = addElement(element, 'span', 'cell ' + column, '');
      addElement(cell, 'span', 'share', percent(sums[column][i], all));
      addElement(cell, 'span', 'value', format(sums[column][i]));
      const bar = addElement(cell, 'i', 'bar', '');
      bar.style.width = 100 * sums[column][i] / all + '%';
    }
    const name = addElement(element, 'span', 'cell name', '');
    const button = addElement(name, 'button', '', frames.name[i]);
    button.type = 'button';
    button.title = frames.name[i];
    element.addEventListener('click', () => {
      // Selecting text is no click.
      if (String(getSelection()) === '') {
        events.chosen(i);
      }
    });
    addElement(element, 'span', 'cell module', frames.module[i] || (frames.kind[i] === KIND.kernel ? 'kernel' : ''));
    return element;
  }

  scroller.addEventListener('scroll', draw, { passive: true });
  new ResizeObserver(draw).observe(scroller);
  return Object.assign(table, {
    show(newFrames, newSums, newAll, newFormat, newHits) {
      [frames, sums, all, format, hits] = [newFrames, newSums, newAll, newFormat, newHits];
      arrange();
    },
    count: () => order.length,
  });
}

// An element with text, behind the others of its parent.
function addElement(parent, tag, className, text) {
  const element = document.createElement(tag);
  if (className !== '') {
    element.className = className;
  }
  element.textContent = text;
  parent.append(element);
  return element;
}
