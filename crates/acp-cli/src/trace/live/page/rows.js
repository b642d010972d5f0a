// The rows that the browser has. They are requested in blocks, when they come into view.

const BLOCK_ROWS = 100;

// When there are more blocks, those that were not needed for the longest time are forgotten.
const MOST_BLOCKS = 40;

const blocks = new Map();

// What the browser knows about the list.
const list = {
  // Its number on the server. It is `null` when there is no connection.
  number: null,
  total: 0,
  matched: 0,
  // The messages that are no longer in the list, because there are too many.
  dropped: 0,
};

let isFetching = false;

// A block that could not be read. It is requested again when there are new messages.
let failedBlock = null;

function clearRows() {
  blocks.clear();
  failedBlock = null;
  Object.assign(list, { total: 0, matched: 0, dropped: 0 });
}

// Returns the row with this number, or `undefined` if the browser does not have it.
const rowAt = (index) => blocks.get(Math.floor(index / BLOCK_ROWS))?.[index % BLOCK_ROWS];

// Requests the rows from `first` up to `end` that the browser does not have, one block after the other. Calls `got` after
// each block.
async function fetchRows(first, end, got) {
  if (isFetching || list.number === null) return;
  const start = Math.floor(first / BLOCK_ROWS);
  const last = Math.floor((Math.max(end, first + 1) - 1) / BLOCK_ROWS);
  for (let at = start; at <= last; at += 1) {
    const block = blocks.get(at);
    if (block) {
      blocks.delete(at);
      blocks.set(at, block);
    }
  }
  const isMissing = (at) => {
    const from = Math.max(first, list.dropped, at * BLOCK_ROWS);
    const to = Math.min(end, list.matched, (at + 1) * BLOCK_ROWS);
    for (let index = from; index < to; index += 1) if (!rowAt(index)) return true;
    return false;
  };
  let wanted = start;
  while (wanted <= last && !isMissing(wanted)) wanted += 1;
  if (wanted > last || wanted === failedBlock) return;
  isFetching = true;
  const { number } = list;
  try {
    // A block that was requested before can have more rows now.
    const known = blocks.get(wanted) || [];
    const from = wanted * BLOCK_ROWS + (known.length > 0 && !known.includes(undefined) ? known.length : 0);
    const count = (wanted + 1) * BLOCK_ROWS - from;
    const query = new URLSearchParams({ list: number, from, count });
    const found = await (await request(`/rows?${query}`)).json();
    if (number === list.number && found.rows.length === 0) failedBlock = wanted;
    // Old messages may have been dropped meanwhile.
    else if (number === list.number && Math.floor(found.from / BLOCK_ROWS) === wanted) {
      const block = blocks.get(wanted) || [];
      found.rows.forEach((row, at) => {
        block[(found.from % BLOCK_ROWS) + at] = row;
      });
      blocks.set(wanted, block);
      while (blocks.size > MOST_BLOCKS) blocks.delete(blocks.keys().next().value);
    }
  } catch (error) {
    // When the command has ended, the page says so.
    if (number === list.number && !(error instanceof TypeError)) byId('problem').textContent = error.message;
    if (number === list.number) failedBlock = wanted;
  }
  isFetching = false;
  got();
}
