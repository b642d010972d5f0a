// The message that is open, next to its request or response.

// Messages that were opened can be read again when the command has ended. Their texts have at most this many characters.
const MOST_READ = 20_000_000;

const read = new Map();
let readLength = 0;

const opened = { line: null, row: null, isWaiting: false };

function closeMessage() {
  Object.assign(opened, { line: null, row: null, isWaiting: false });
  byId('message').hidden = true;
  for (const line of body.querySelectorAll('tr.is-open')) markOpen(line);
  showRows();
}

function openMessage(row) {
  Object.assign(opened, { line: row.line, row, isWaiting: false });
  for (const line of body.querySelectorAll('tr.row')) markOpen(line);
  byId('message').hidden = false;
  byId('message-title').textContent = visible(`${row.name || row.kind}${row.id === null ? '' : ` ${row.id}`}`);
  byId('message-took').textContent = '';
  const known = read.get(row.at);
  if (known) showMessage(row, known);
  else byId('message-parts').replaceChildren(element('p', 'soft', 'Loading…'));
  if (!known?.other) readMessage(row);
  showRows();
}

const lengthOf = ({ message, other }) => message.text.length + (other ? other.message.text.length : 0);

// Reads a message. A request is read again until there is a response.
async function readMessage(row) {
  if (row.kind === 'event') {
    showMessage(row, { message: { text: row.summary, is_json: false, notes: [] }, other: null });
    return;
  }
  try {
    const query = new URLSearchParams({ list: list.number ?? '', at: row.at });
    if (list.number === null) throw new TypeError('not connected');
    const found = await (await request(`/message?${query}`)).json();
    if (read.has(row.at)) readLength -= lengthOf(read.get(row.at));
    read.set(row.at, found);
    readLength += lengthOf(found);
    while (readLength > MOST_READ && read.size > 1) {
      const [at, oldest] = read.entries().next().value;
      readLength -= lengthOf(oldest);
      read.delete(at);
    }
    if (opened.row === row) showMessage(row, found);
  } catch (error) {
    if (opened.row !== row || read.has(row.at)) return;
    const isGone = error instanceof TypeError;
    const why = isGone ? 'The command has ended, and this message was not opened before.' : error.message;
    byId('message-parts').replaceChildren(element('p', 'broken', why));
  }
}

// Called when there are new messages, of which one may be the response.
function updateMessage() {
  if (opened.isWaiting) readMessage(opened.row);
}

function messagePart(label, line, from, message) {
  const button = (text, act) => {
    const pressed = element('button', '', text);
    pressed.type = 'button';
    pressed.addEventListener('click', act);
    return pressed;
  };
  const head = element('div', 'buttons', element('h3', '', label));
  head.append(element('span', 'soft', [`line ${line}`, ...message.notes].join(' · ')));
  const copy = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(message.text);
      copy.textContent = 'Copied';
    } catch (error) {
      copy.textContent = 'Not copied';
    }
  });
  head.append(copy);
  if (message.is_json && !byId('sending').hidden) {
    head.append(button('Edit and send', () => editMessage(message.text, from)));
  }
  if (line !== opened.line) head.append(button('Show in the list', () => goToLine(line)));
  const broken = (findings.get(line) || []).map((finding) =>
    element('p', 'broken', `${finding.level} ${finding.rule}: ${visible(finding.text)}`));
  return element('section', `part from-${from}`, head, ...broken, element('pre', '', visible(message.text)));
}

function showMessage(row, { message, other }) {
  const isResponse = row.kind === 'response' || row.kind === 'error';
  const isRequest = row.kind === 'request';
  const label = isRequest ? 'Request' : isResponse ? 'Response' : visible(row.kind);
  const parts = [messagePart(label, row.line, row.from, message)];
  if (other) {
    const from = row.from === 'agent' ? 'client' : 'agent';
    const part = messagePart(isRequest ? 'Response' : 'Request', other.line, from, other.message);
    if (isRequest) parts.push(part);
    else parts.unshift(part);
    byId('message-took').textContent = `response after ${other.took}`;
  }
  opened.isWaiting = isRequest && !other;
  if (opened.isWaiting) parts.push(element('p', 'soft part', 'There is no response yet.'));
  byId('message-parts').replaceChildren(...parts);
}

byId('message-close').addEventListener('click', closeMessage);
