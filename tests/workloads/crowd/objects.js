// Counts in objects, and writes them as JSON, every few milliseconds.
function count(turns) {
  const counts = {};
  for (let i = 0; i < turns; i++) counts["key" + (i % 100)] = (counts["key" + (i % 100)] || 0) + i;
  return JSON.stringify(counts);
}
setInterval(() => count(30000), 5);
