// Numbers that the program packed: what SVG files and pages share.
//
// In: base64 of a zlib stream. Out: its bytes, and a reader of the numbers in them, which are little endian in groups of seven
// bits, the top bit set on all but the last byte. SVG files hold no character that markup would change, so that comparisons are
// written out here.

function inflate(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at !== bytes.length; at += 1) {
    bytes[at] = binary.charCodeAt(at);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

function numberReader(buffer) {
  const all = new Uint8Array(buffer);
  let at = 0;
  function number() {
    let value = 0;
    let scale = 1;
    let byte;
    do {
      byte = all[at];
      at += 1;
      value += byte % 128 * scale;
      scale *= 128;
    } while (byte !== byte % 128);
    return value;
  }
  function bytes(count) {
    at += count;
    return all.subarray(at - count, at);
  }
  function numbers(count) {
    const column = new Float64Array(count);
    for (let i = 0; i !== count; i += 1) {
      column[i] = number();
    }
    return column;
  }
  return { number, bytes, numbers };
}
