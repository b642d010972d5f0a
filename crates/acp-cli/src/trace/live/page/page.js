// The filter, the stream of events, and the keyboard.

let stream = new AbortController();
let isEnded = false;

// The command that opens the trace later, or `null` if the trace is deleted at the end.
let laterCommand = null;

// Where the table was before the last scroll event.
let lastTop = 0;

// The line to show as soon as it is read.
let wantedLine = null;

function showState(text, className) {
  byId('state').textContent = text;
  byId('state').className = className || '';
}

function filterQuery() {
  const query = new URLSearchParams();
  for (const id of ['text', 'from', 'method', 'session']) if (byId(id).value) query.set(id, byId(id).value);
  if (byId('errors').checked) query.set('errors', 'true');
  return query;
}

const handlers = {
  start(facts) {
    clearTable();
    list.number = facts.list;
    laterCommand = facts.later;
    byId('command').textContent = visible(facts.command);
    document.title = `trace: ${visible(facts.command)}`;
    const secrets = facts.hasSecrets ? 'secrets included' : 'secrets redacted';
    byId('facts').textContent = visible([facts.started, facts.by, secrets].join(' · '));
    byId('sending').hidden = !facts.canSend;
    showState('reading', '');
  },
  progress({ read: done, size, found }) {
    showFound(found);
    showState(`reading, ${Math.floor((100 * done) / Math.max(size, 1))} %`, '');
  },
  rows(found) {
    showFound(found);
    isEnded = found.is_ended;
    showState(isEnded ? 'recording ended' : 'live', isEnded ? 'ended' : 'live');
    if (wantedLine !== null) findWantedLine(true);
  },
  findings({ findings: found, total }) {
    for (const finding of found) {
      const known = findings.get(finding.line) || [];
      findings.set(finding.line, [...known, finding]);
      const open = element('button', '', `line ${finding.line}: ${finding.level} ${finding.rule}: ${visible(finding.text)}`);
      open.type = 'button';
      open.addEventListener('click', () => goToLine(finding.line));
      byId('findings-list').append(element('li', '', open));
      const row = body.querySelector(`tr.row[data-line="${finding.line}"]`);
      if (row) markFindings(row);
    }
    byId('findings').hidden = false;
    const shown = byId('findings-list').childElementCount;
    byId('findings-count').textContent = `${number(total)} ${total === 1 ? 'finding' : 'findings'}`
      + (shown < total ? `, of which the first ${number(shown)} are listed` : '');
  },
  failed(why) {
    byId('problem').textContent = visible(why);
    showState('stopped', 'ended');
    isEnded = true;
  },
};

function addOption(id, value) {
  const known = byId(id).options;
  if ([...known].some((option) => option.value === value)) return;
  const option = element('option', '', visible(value));
  option.value = value;
  byId(id).append(option);
}

function showFound(found) {
  for (const session of found.sessions) addOption('session', session);
  for (const method of found.methods) addOption('methods', method);
  resizeTable({ total: found.total, matched: found.matched, dropped: found.dropped });
  updateMessage();
}

// The server is gone. What the page has loaded can still be read.
function showGone() {
  list.number = null;
  showState('the command has ended', 'ended');
  byId('gone').hidden = false;
  byId('gone').replaceChildren('The command has ended. The page still shows what it has loaded. ');
  if (laterCommand === null) byId('gone').append('The trace was temporary, and is deleted. To keep one, give `acp trace live` a file.');
  else byId('gone').append('To view the whole trace: ', element('code', '', visible(laterCommand)));
}

// Starts over, with the filter as it is now.
async function restart() {
  stream.abort();
  stream = new AbortController();
  const { signal } = stream;
  list.number = null;
  byId('problem').textContent = '';
  findings.clear();
  byId('findings-list').replaceChildren();
  byId('findings').hidden = true;
  try {
    await readEvents(`/events?${filterQuery()}`, signal, (name, data) => {
      if (!signal.aborted) handlers[name]?.(data);
    });
    if (!signal.aborted && byId('state').textContent !== 'stopped') showGone();
  } catch (error) {
    if (signal.aborted) return;
    // A stream that breaks off means that the server is gone, and so is the command.
    const isGone = error instanceof TypeError;
    if (isGone) {
      showGone();
      return;
    }
    showState('stopped', 'ended');
    byId('problem').textContent = error.message;
  }
}

// Shows the message on a line of the trace, whatever the filter hides.
async function goToLine(line) {
  wantedLine = line;
  byId('follow').checked = false;
  await findWantedLine(false);
}

async function findWantedLine(isComplete) {
  if (list.number === null) return;
  const line = wantedLine;
  try {
    const query = new URLSearchParams({ list: list.number, line });
    const found = await (await request(`/find?${query}`)).json();
    if (wantedLine !== line) return;
    if (found.is_listed) {
      wantedLine = null;
      selectRow(found.number);
      openWhenRead(found.number);
    } else if (filterQuery().size > 0) {
      clearFilter();
      restart();
    } else if (isComplete) {
      wantedLine = null;
    }
  } catch (error) {
    byId('problem').textContent = error.message;
  }
}

// Opens a message as soon as its row is read, unless the user has gone elsewhere.
async function openWhenRead(index) {
  const { number: listNumber } = list;
  while (!rowAt(index)) {
    await new Promise(requestAnimationFrame);
    if (selected !== index || list.number !== listNumber || failedBlock !== null) return;
    showRows();
  }
  showRow(index);
  openMessage(rowAt(index));
  selectRow(index);
}

function clearFilter() {
  for (const id of ['text', 'from', 'method', 'session']) byId(id).value = '';
  byId('errors').checked = false;
}

let typing = 0;
for (const id of ['text', 'method']) {
  byId(id).addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(restart, 250);
  });
}
for (const id of ['from', 'session', 'errors']) byId(id).addEventListener('change', restart);
byId('filters').addEventListener('submit', (event) => event.preventDefault());
byId('clear').addEventListener('click', () => {
  clearFilter();
  restart();
});
byId('follow').addEventListener('change', () => {
  if (isFollowing()) showEnd();
});
// Whoever scrolls up wants to read.
scroller.addEventListener('scroll', () => {
  const fromEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  if (scroller.scrollTop < lastTop - 2 && fromEnd > 40) byId('follow').checked = false;
  lastTop = scroller.scrollTop;
  showRows();
});
new ResizeObserver(() => (isFollowing() ? showEnd() : showRows())).observe(scroller);
body.addEventListener('click', (event) => {
  const line = event.target.closest('tr.row');
  if (!line || String(getSelection())) return;
  const index = Number(line.dataset.index);
  selected = index;
  if (Number(line.dataset.line) === opened.line) closeMessage();
  else openMessage(rowAt(index));
});

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest('input, select, textarea')) return;
  if (event.key === '/') {
    event.preventDefault();
    byId('text').focus();
  } else if (event.key === 'f') {
    byId('follow').click();
  } else if (event.key === 'Escape') {
    closeMessage();
  } else if ((event.key === 'j' || event.key === 'k') && list.matched > 0) {
    // Without a selected message, start at the end.
    const next = event.key === 'j' ? 1 : -1;
    selectRow(selected === null ? list.matched - 1 : selected + next);
    if (opened.row && rowAt(selected)) openMessage(rowAt(selected));
  }
});

(async () => {
  try {
    if (!token) throw new Error('This address has no token. Open the one that `acp trace live` has printed.');
    await signIn();
    await restart();
  } catch (error) {
    byId('problem').textContent = error.message;
    showState('not connected', 'ended');
  }
})();
