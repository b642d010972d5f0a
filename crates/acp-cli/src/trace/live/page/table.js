// The table of messages. It is as high as if it had all of them, but only the rows in view are in the document.

// The height of a row, as in the style.
const ROW_HEIGHT = 24;

// How many rows above and below those in view are in the document.
const MARGIN_ROWS = 20;

const scroller = byId('scroller');
const body = byId('rows');

const findings = new Map();

// The rows in the document, by their numbers.
const made = new Map();

// The number of the message that the keyboard has selected.
let selected = null;

const isFollowing = () => byId('follow').checked;

function makeRow(row, index) {
  const line = element('tr', `row ${row.kind}`);
  if (row.from) line.classList.add(`from-${row.from}`);
  if (row.is_error) line.classList.add('is-error');
  Object.assign(line.dataset, { line: row.line, index });
  line.setAttribute('aria-rowindex', index + 2);
  const isResponse = row.kind === 'response' || row.kind === 'error';
  const id = row.id === null ? null : element('span', 'id', ` ${isResponse ? '=' : '#'}${visible(row.id)}`);
  const open = element('button', 'open', visible(row.name || row.kind), id);
  open.type = 'button';
  open.title = `${row.kind}, line ${row.line} of the trace`;
  const content = element('td', 'content');
  if (row.is_by_hand) content.append(element('span', 'tag hand', 'by hand'));
  if (row.session) content.append(element('span', 'tag', visible(row.session)));
  content.append(visible(row.summary));
  const way = { client: 'client →', agent: '← agent' }[row.from] || '·';
  line.append(
    element('td', 'time', row.time),
    element('td', 'way', row.kind === 'stderr' ? '! stderr' : way),
    element('td', 'name', open),
    element('td', 'took', row.took),
    content,
  );
  markFindings(line);
  markOpen(line);
  return line;
}

function makeMissingRow(index) {
  const line = element('tr', 'missing', element('td', 'time'), element('td', 'way'), element('td', 'name', '…'));
  line.dataset.index = index;
  return line;
}

// Marks a row whose message breaks a rule.
function markFindings(row) {
  const count = (findings.get(Number(row.dataset.line)) || []).length;
  const content = row.querySelector('.content');
  content.querySelector('.finding')?.remove();
  if (count > 0) content.prepend(element('span', 'tag finding', count === 1 ? '1 finding' : `${count} findings`));
}

// Marks the row of the message that is open.
function markOpen(row) {
  const isOpen = Number(row.dataset.line) === opened.line;
  row.classList.toggle('is-open', isOpen);
  row.querySelector('.open').setAttribute('aria-expanded', isOpen);
}

const headHeight = () => byId('head').offsetHeight;

// Returns the numbers of the rows in view.
function rowsInView() {
  const top = Math.floor(scroller.scrollTop / ROW_HEIGHT);
  const count = Math.ceil((scroller.clientHeight - headHeight()) / ROW_HEIGHT);
  const first = Math.min(list.dropped + top, Math.max(list.dropped, list.matched - count));
  return { first, end: Math.min(list.matched, first + count + 1) };
}

// Puts the rows in view into the document, and requests those that are missing.
function showRows() {
  const view = rowsInView();
  const first = Math.max(list.dropped, view.first - MARGIN_ROWS);
  const end = Math.min(list.matched, view.end + MARGIN_ROWS);
  byId('above').style.height = `${(first - list.dropped) * ROW_HEIGHT}px`;
  byId('after').style.height = `${(list.matched - end) * ROW_HEIGHT}px`;
  for (const [index, line] of made) {
    if (index >= first && index < end) continue;
    line.remove();
    made.delete(index);
  }
  let before = null;
  for (let index = first; index < end; index += 1) {
    const row = rowAt(index);
    let line = made.get(index);
    if (!line || (row && line.classList.contains('missing'))) {
      line?.remove();
      line = row ? makeRow(row, index) : makeMissingRow(index);
      made.set(index, line);
      if (before) before.after(line);
      else body.prepend(line);
    }
    before = line;
  }
  fetchRows(first, end, showRows);
}

// Scrolls to the end, which is where new messages appear.
function showEnd() {
  scroller.scrollTop = scroller.scrollHeight;
  lastTop = scroller.scrollTop;
  showRows();
}

// The number of messages has changed.
function resizeTable(counts) {
  const dropped = counts.dropped - list.dropped;
  Object.assign(list, counts);
  failedBlock = null;
  showRows();
  if (isFollowing()) showEnd();
  else if (dropped > 0) scroller.scrollTop -= dropped * ROW_HEIGHT;
  showCounts();
}

// Scrolls to a row, if it is not in view.
function showRow(index) {
  const { first, end } = rowsInView();
  if (index > first && index < end - 2) return;
  const middle = Math.floor((scroller.clientHeight - headHeight()) / 2);
  scroller.scrollTop = (index - list.dropped) * ROW_HEIGHT - middle;
  lastTop = scroller.scrollTop;
  showRows();
}

// Selects a message for the keyboard. Its row may not have been read yet.
function selectRow(index) {
  selected = Math.min(Math.max(index, list.dropped), list.matched - 1);
  byId('follow').checked = false;
  showRow(selected);
  made.get(selected)?.querySelector('.open')?.focus({ preventScroll: true });
}

function clearTable() {
  clearRows();
  made.clear();
  selected = null;
  body.replaceChildren();
  byId('above').style.height = '0';
  byId('after').style.height = '0';
}

function showCounts() {
  const { total, matched, dropped } = list;
  const hidden = total - matched;
  let text = hidden > 0 ? `${number(matched)} of ${number(total)} messages` : `${number(total)} messages`;
  if (total === 1) text = text.replace('messages', 'message');
  if (dropped > 0) text += `, of which the last ${number(matched - dropped)} are listed`;
  byId('counts').textContent = text;
  byId('table').setAttribute('aria-rowcount', matched + 1);
  byId('empty').hidden = matched > 0;
  byId('empty').textContent = total > 0 ? 'No messages match the filter.' : 'There are no messages yet.';
}
