// Puts a text on the clipboard: what SVG files and pages share.
//
// In: a text. Out: nothing; `done` is called when it is there.

function copyText(text, done) {
  function byCommand() {
    const area = document.createElementNS('http://www.w3.org/1999/xhtml', 'textarea');
    area.value = text;
    area.style.position = 'fixed';
    (document.body || document.documentElement).append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    done();
  }
  // Pages that came without encryption have none.
  if (navigator.clipboard) {
    navigator.clipboard.writeText(text).then(done, byCommand);
  } else {
    byCommand();
  }
}
