// Puts a text on the clipboard: what SVG files and pages share.
//
// In: a text. Out: nothing; `say` is called with a sentence when it is there, or cannot be.

function copyText(text, say) {
  function done() {
    say('Copied: ' + text);
  }
  // Only documents of HTML have commands.
  function byCommand() {
    if (!document.body) {
      say('This browser lets a picture copy only from a file, or over https');
      return;
    }
    const area = document.createElementNS('http://www.w3.org/1999/xhtml', 'textarea');
    area.value = text;
    area.style.position = 'fixed';
    document.body.append(area);
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
