// The table of messages. Only a part of them is in the document: the newest, or those around which the user reads.

// When the user follows the end, at most this many rows are in the document. While they read, it may be more.
const FOLLOWED_ROWS = 1000;
const MOST_ROWS = 3000;

const scroller = byId('scroller');
const body = byId('rows');

const table = {
  // Whether the last row is the newest message.
  hasEnd: true,
  // Messages that are newer than the last row, if it is not the newest.
  below: 0,
  total: 0,
  matched: 0,
  findings: new Map(),
};

const rowsOf = () => body.querySelectorAll('tr.row');
const isFollowing = () => byId('follow').checked;

function makeRow(row) {
  const made = element('tr', `row ${row.kind}`);
  if (row.from) made.classList.add(`from-${row.from}`);
  if (row.is_error) made.classList.add('is-error');
  Object.assign(made.dataset, { line: row.line, at: row.at, from: row.from || '' });
  const isResponse = row.kind === 'response' || row.kind === 'error';
  const id = row.id === null ? null : element('span', 'id', ` ${isResponse ? '=' : '#'}${visible(row.id)}`);
  const open = element('button', 'open', visible(row.name || row.kind), id);
  open.type = 'button';
  open.title = `${row.kind}, line ${row.line} of the trace`;
  open.setAttribute('aria-expanded', 'false');
  const content = element('td', 'content');
  if (row.is_by_hand) content.append(element('span', 'tag hand', 'by hand'));
  if (row.session) content.append(element('span', 'tag', visible(row.session)));
  content.append(visible(row.summary));
  const way = { client: 'client →', agent: '← agent' }[row.from] || '·';
  made.append(
    element('td', 'time', row.time),
    element('td', 'way', row.kind === 'stderr' ? '! stderr' : way),
    element('td', 'name', open),
    element('td', 'took', row.took),
    content,
  );
  markFindings(made);
  return made;
}

// Marks a row whose message breaks a rule.
function markFindings(row) {
  const count = (table.findings.get(Number(row.dataset.line)) || []).length;
  const content = row.querySelector('.content');
  content.querySelector('.finding')?.remove();
  if (count > 0) content.prepend(element('span', 'tag finding', count === 1 ? '1 finding' : `${count} findings`));
}

// Removes rows from the start or the end, with what is open below them.
function removeRows(count, fromStart) {
  const rows = [...rowsOf()];
  for (const row of fromStart ? rows.slice(0, count) : rows.slice(rows.length - count)) {
    if (row.nextElementSibling?.classList.contains('full')) row.nextElementSibling.remove();
    row.remove();
  }
}

function appendRows(rows) {
  if (!table.hasEnd) {
    table.below += rows.length;
    return;
  }
  const count = rowsOf().length;
  if (!isFollowing() && count + rows.length > MOST_ROWS) {
    // Rows that would come into view are never removed while the user reads.
    table.hasEnd = false;
    table.below = rows.length;
    return;
  }
  body.append(...rows.map(makeRow));
  if (isFollowing()) {
    removeRows(Math.max(0, rowsOf().length - FOLLOWED_ROWS), true);
    scroller.scrollTop = scroller.scrollHeight;
  }
}

// Rows before the first one. Keeps what the user sees in its place.
function prependRows(rows) {
  const height = scroller.scrollHeight;
  body.prepend(...rows.map(makeRow));
  scroller.scrollTop += scroller.scrollHeight - height;
  const extra = rowsOf().length - MOST_ROWS;
  if (extra > 0) {
    removeRows(extra, false);
    table.below += extra;
    table.hasEnd = false;
  }
}

function clearTable() {
  body.replaceChildren();
  Object.assign(table, { hasEnd: true, below: 0, total: 0, matched: 0 });
}

function showCounts() {
  const shown = rowsOf().length;
  const hidden = table.total - table.matched;
  let text = `${number(shown)} of ${number(table.matched)} messages shown`;
  if (hidden > 0) text += `, ${number(hidden)} hidden by the filter`;
  byId('counts').textContent = text;
  const earlier = table.matched - shown - (table.hasEnd ? 0 : table.below);
  byId('earlier').hidden = earlier <= 0 || shown === 0;
  byId('earlier').textContent = `Show earlier messages (${number(earlier)})`;
  byId('below').hidden = table.hasEnd;
  byId('below-count').textContent = `${number(table.below)} newer messages are not shown.`;
  byId('empty').hidden = shown > 0;
  byId('empty').textContent = table.total > 0 ? 'No messages match the filter.' : 'There are no messages yet.';
}
