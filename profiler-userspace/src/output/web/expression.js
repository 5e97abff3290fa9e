// What was typed as a regular expression: what SVG files and pages share.

// Case counts if there is a capital letter. An empty text is none.
function compileSearch(text) {
  const hasCapital = /[A-Z]/.test(text.replace(/\\./g, ''));
  try {
    return { expression: text === '' ? null : new RegExp(text, hasCapital ? 'u' : 'iu'), error: '' };
  } catch (error) {
    const why = String(error.message).replace(/^.*\/[a-z]*: /, '');
    return { expression: null, error: 'Not a regular expression: ' + why };
  }
}
