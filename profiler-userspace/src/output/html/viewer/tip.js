// Box beside the pointer: all about the frame below it.
//
// In: lines, and where the pointer is. Out: a box that is in view.

const TIP_GAP = 14;

function makeTip(box) {
  // `lines` are pairs of a label and a text; the first text is a name.
  function show(lines) {
    box.replaceChildren();
    lines.forEach(([label, text], i) => {
      const line = addElement(box, 'div', i === 0 ? 'tip-name' : 'tip-line', '');
      if (label !== '') {
        addElement(line, 'span', 'tip-label', label + ' ');
      }
      line.append(text);
    });
    box.hidden = lines.length === 0;
  }

  function place(x, y) {
    const { width, height } = box.getBoundingClientRect();
    const left = x + TIP_GAP + width > innerWidth ? x - TIP_GAP - width : x + TIP_GAP;
    const top = y + TIP_GAP + height > innerHeight ? y - TIP_GAP - height : y + TIP_GAP;
    box.style.left = Math.max(0, left) + 'px';
    box.style.top = Math.max(0, top) + 'px';
  }

  return { show, place };
}
