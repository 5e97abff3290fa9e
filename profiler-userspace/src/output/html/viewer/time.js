// The timeline, and the heat map below it: what was counted when, and by whom.
//
// In: windows with sums, rows of the heat map. Out: pixels, and the range of windows that the user selects.

const HEAT_ROW = 16;

function makeTime(elements, events) {
  const { timeline, heat, heatScroller, heatSpacer } = elements;
  const time = { windows: [], total: null, rows: [], range: null, marked: null, labelWidth: 0 };
  let begin = 0;
  let length = 1;
  let looks = {};

  function show(windows, total, rows, range) {
    Object.assign(time, { windows, total, rows, range });
    begin = windows[0][0];
    length = Math.max(1, windows[windows.length - 1][1] - begin);
    draw();
  }

  function prepare(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    canvas.style.width = width + 'px';
    canvas.style.height = height + 'px';
    const pen = canvas.getContext('2d');
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = '11px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    return pen;
  }

  function readLooks() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    looks = {
      paper: value('--paper'), ink: value('--ink'), faint: value('--faint'), bar: value('--bar'), lost: value('--lost'),
      veil: value('--veil'), base: value('--focus'),
    };
  }

  // Where a time is, in pixels.
  function place(ns) {
    return time.labelWidth + (ns - begin) / length * (time.width - time.labelWidth);
  }

  function draw() {
    time.width = timeline.parentElement.clientWidth;
    if (time.width === 0 || time.windows.length === 0) {
      return;
    }
    const isHeat = !heatScroller.hidden;
    time.labelWidth = isHeat ? Math.min(200, Math.round(time.width * 0.3)) : 0;
    readLooks();
    drawTimeline();
    if (isHeat) {
      drawHeat();
    }
  }

  function drawTimeline() {
    const height = 56;
    const base = height - 14;
    const pen = prepare(timeline, time.width, height);
    const rate = (i) => time.total[i] / Math.max(1, time.windows[i][1] - time.windows[i][0]);
    let most = 0;
    for (let i = 0; i < time.windows.length; i += 1) {
      most = Math.max(most, rate(i));
    }
    time.windows.forEach(([start, end, , , lost], i) => {
      const x = place(start);
      const width = Math.max(1, place(end) - x - 1);
      const bar = most > 0 ? rate(i) / most * (base - 4) : 0;
      pen.fillStyle = looks.bar;
      pen.fillRect(x, base - bar, width, bar);
      if (lost > 0) {
        pen.fillStyle = looks.lost;
        pen.fillRect(x, 0, width, 3);
      }
    });
    pen.fillStyle = looks.faint;
    pen.fillRect(time.labelWidth, base, time.width - time.labelWidth, 1);
    if (time.marked) {
      pen.fillStyle = looks.ink;
      const left = place(time.marked[0]);
      pen.fillRect(left, base - 1, Math.max(2, place(time.marked[1]) - left), 3);
    }
    drawTicks(pen, height - 6);
    drawVeil(pen, base);
  }

  // Times at round numbers, so many as there is room for.
  function drawTicks(pen, y) {
    const room = Math.max(1, Math.floor((time.width - time.labelWidth) / 90));
    const steps = [1, 2, 5, 10].map((digit) => digit * 10 ** Math.floor(Math.log10(length / room)));
    const step = steps.find((step) => length / step <= room) || length;
    for (let at = Math.ceil(begin / step) * step; at <= begin + length; at += step) {
      const text = String(Number((at / 1e9).toPrecision(6))) + ' s';
      const width = pen.measureText(text).width;
      pen.fillText(text, Math.max(time.labelWidth, Math.min(time.width - width, place(at) - width / 2)), y);
    }
  }

  // What is not selected lies behind a veil.
  function drawVeil(pen, height) {
    drawRange(pen, height);
    if (time.base) {
      // Range that the selected one is compared with.
      const left = place(time.windows[time.base[0]][0]);
      pen.globalAlpha = 0.3;
      pen.fillStyle = looks.base;
      pen.fillRect(left, 0, place(time.windows[time.base[1]][1]) - left, height);
      pen.globalAlpha = 1;
    }
  }

  function drawRange(pen, height) {
    if (!time.range) {
      return;
    }
    const from = place(time.windows[time.range[0]][0]);
    const to = place(time.windows[time.range[1]][1]);
    pen.fillStyle = looks.veil;
    pen.fillRect(time.labelWidth, 0, from - time.labelWidth, height);
    pen.fillRect(to, 0, time.width - to, height);
    pen.fillStyle = looks.ink;
    pen.fillRect(from, 0, 1, height);
    pen.fillRect(to - 1, 0, 1, height);
  }

  function drawHeat() {
    const height = heatScroller.clientHeight;
    const pen = prepare(heat, heatScroller.clientWidth, height);
    heatSpacer.style.height = Math.max(0, time.rows.length * HEAT_ROW - height) + 'px';
    let most = 0;
    for (const { sums } of time.rows) {
      for (const sum of sums) {
        most = Math.max(most, sum);
      }
    }
    const top = heatScroller.scrollTop;
    const first = Math.floor(top / HEAT_ROW);
    const last = Math.min(time.rows.length, first + Math.ceil(height / HEAT_ROW) + 1);
    const column = pen.measureText('abcdefghij').width / 10;
    for (let row = first; row < last; row += 1) {
      const { label, sums } = time.rows[row];
      const y = row * HEAT_ROW - top;
      pen.globalAlpha = 1;
      pen.fillStyle = looks.ink;
      pen.fillText(fit(label, Math.floor((time.labelWidth - 8) / column)), 4, y + HEAT_ROW / 2);
      pen.fillStyle = looks.bar;
      time.windows.forEach(([start, end], i) => {
        if (sums[i] > 0) {
          const x = place(start);
          // Roots, so that little can be told from nothing.
          pen.globalAlpha = 0.15 + 0.85 * Math.sqrt(sums[i] / most);
          pen.fillRect(x, y, Math.max(1, place(end) - x - 1), HEAT_ROW - 1);
        }
      });
    }
    pen.globalAlpha = 1;
    drawVeil(pen, height);
  }

  // The window at a pixel, the nearest one outside of all.
  function windowAt(x) {
    const ns = begin + (x - time.labelWidth) / Math.max(1, time.width - time.labelWidth) * length;
    let found = 0;
    while (found < time.windows.length - 1 && time.windows[found][1] <= ns) {
      found += 1;
    }
    return found;
  }

  // Marks a stretch of time, or none.
  function mark(marked) {
    time.marked = marked;
    draw();
  }

  function select(range) {
    time.range = range;
    draw();
  }

  // Dragging selects; a click selects one window, and selected alone it frees it again.
  function listenTo(canvas, isHeat) {
    let from = null;
    const x = (event) => event.clientX - canvas.getBoundingClientRect().left;
    const rowAt = (event) => {
      const y = event.clientY - canvas.getBoundingClientRect().top;
      return isHeat ? Math.floor((y + heatScroller.scrollTop) / HEAT_ROW) : -1;
    };
    canvas.addEventListener('pointerdown', (event) => {
      if (isHeat && x(event) < time.labelWidth) {
        if (time.rows[rowAt(event)]) {
          events.rowChosen(time.rows[rowAt(event)].key);
        }
        return;
      }
      from = windowAt(x(event));
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      const at = windowAt(x(event));
      events.pointed(at, time.rows[rowAt(event)] || null);
      if (from !== null && (at !== from || time.range)) {
        select([Math.min(from, at), Math.max(from, at)]);
      }
    });
    canvas.addEventListener('pointerup', (event) => {
      if (from === null) {
        return;
      }
      const at = windowAt(x(event));
      const range = [Math.min(from, at), Math.max(from, at)];
      const isAgain = events.range() && range[0] === range[1] && events.range().join() === range.join();
      from = null;
      events.selected(isAgain ? null : range, true);
    });
    canvas.addEventListener('pointercancel', () => { from = null; });
    canvas.addEventListener('pointerleave', () => events.pointed(-1, null));
  }

  // Arrow keys move the range, with Shift they move its end.
  function key(event) {
    const step = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
    if (step === 0) {
      return false;
    }
    const most = time.windows.length - 1;
    const within = (i) => Math.max(0, Math.min(most, i));
    const [first, last] = time.range || (step > 0 ? [-1, -1] : [most + 1, most + 1]);
    const end = within(last + step);
    const start = event.shiftKey ? Math.min(within(first), end) : Math.max(0, Math.min(first + step, end));
    // Not each of them is a step of the page's history.
    events.selected([start, end], false);
    return true;
  }

  listenTo(timeline, false);
  listenTo(heat, true);
  heatScroller.addEventListener('scroll', draw, { passive: true });
  new ResizeObserver(draw).observe(timeline.parentElement);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  return Object.assign(time, { show, mark, draw, key });
}
