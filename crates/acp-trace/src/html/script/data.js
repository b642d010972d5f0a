// The data of the page, and functions that all of it uses. What peers sent becomes text nodes only, never markup:
// nothing here sets innerHTML.
//
// Rows are numbered as in the index. The view is the rows that pass the filters; only its visible part is in the
// document. Messages are JSON lines in blocks, and each is parsed when it is viewed.
//
// The files of this directory are concatenated into one function.

const byId = (id) => document.getElementById(id);
const data = (id) => JSON.parse(byId(id).textContent);

const index = data('index');
const findings = data('findings');
const notes = data('notes');
const count = index.t.length;
const KINDS = {
  q: 'request', n: 'notification', a: 'answer', e: 'error', x: 'no message', s: 'stderr', v: 'process',
};
const ROW = 32;
// Longer times between two rows are shown as space, in microseconds.
const GAP = 100_000;
// Browsers cannot scroll more than some ten million pixels.
const TALLEST = 12_000_000;

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function button(label, onclick, className) {
  const made = element('button', className, label);
  made.type = 'button';
  made.addEventListener('click', onclick);
  return made;
}

function lasts(microseconds) {
  const digits = (value) => (value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0));
  if (microseconds < 1000) return `${microseconds} µs`;
  if (microseconds < 1e6) return `${digits(microseconds / 1e3)} ms`;
  if (microseconds < 60e6) return `${digits(microseconds / 1e6)} s`;
  const seconds = Math.round(microseconds / 1e6);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

const seconds = (microseconds) => (microseconds / 1e6).toFixed(3);
const number = (value) => value.toLocaleString('en');

function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// Escapes terminal control sequences, bidirectional controls and invisible characters, as in JSON.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const visible = (text) =>
  text.replace(UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

const colorOf = (row) => (index.session[row] < 0 ? 'none' : `s${index.session[row] % 8}`);
const nameOf = (row) => index.names[index.name[row]][0];
const isAnswer = (row) => index.kind[row] === 'a' || index.kind[row] === 'e';

const findingsOf = new Map();
const rowOfLine = new Map();
if (findings.length > 0) {
  for (let row = 0; row < count; row += 1) rowOfLine.set(index.line[row], row);
  for (const finding of findings) {
    const row = rowOfLine.get(finding.line);
    if (row === undefined) continue;
    if (!findingsOf.has(row)) findingsOf.set(row, []);
    findingsOf.get(row).push(finding);
  }
}

// ---- Messages

const blocks = document.getElementsByClassName('block');
const blockCache = new Map();

function blockOf(row) {
  let low = 0;
  let high = index.blocks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (index.blocks[middle] <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}

const textOfBlock = (block) => blocks[block].textContent.slice(1);

function messageText(row) {
  const block = blockOf(row);
  let known = blockCache.get(block);
  if (!known) {
    const text = textOfBlock(block);
    const starts = [0];
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
    known = { text, starts };
    if (blockCache.size >= 4) blockCache.delete(blockCache.keys().next().value);
    blockCache.set(block, known);
  }
  const line = row - index.blocks[block];
  return known.text.slice(known.starts[line], known.starts[line + 1] - 1);
}

// A number that JavaScript would write differently from the peer.
class Written {
  constructor(text) {
    this.text = text;
  }
}

function parse(text) {
  try {
    return JSON.parse(text, (_key, value, context) =>
      typeof value === 'number' && context && context.source !== undefined && context.source !== String(value)
        ? new Written(context.source)
        : value);
  } catch (error) {
    // Nested too deeply to walk.
    return new Written(text);
  }
}
