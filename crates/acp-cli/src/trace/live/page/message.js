// A message in full, below its row.

async function toggleMessage(row) {
  const open = row.querySelector('.open');
  const below = row.nextElementSibling;
  if (below?.classList.contains('full')) {
    below.remove();
    row.classList.remove('is-open');
    open.setAttribute('aria-expanded', 'false');
    return;
  }
  const cell = element('td', '', element('p', 'soft', 'Loading…'));
  cell.colSpan = 5;
  row.after(element('tr', 'full', cell));
  row.classList.add('is-open');
  open.setAttribute('aria-expanded', 'true');
  try {
    if (row.classList.contains('event')) {
      cell.replaceChildren(element('pre', '', row.querySelector('.content').textContent));
      return;
    }
    const response = await request(`/message?at=${row.dataset.at}`);
    showMessage(row, cell, await response.json());
  } catch (error) {
    cell.replaceChildren(element('p', 'broken', error.message));
  }
}

function showMessage(row, cell, message) {
  const button = (label, act) => {
    const made = element('button', '', label);
    made.type = 'button';
    made.addEventListener('click', act);
    return made;
  };
  const buttons = element('div', 'buttons', element('span', 'soft', [`line ${row.dataset.line}`, ...message.notes].join(' · ')));
  const copy = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(message.text);
      copy.textContent = 'Copied';
    } catch (error) {
      copy.textContent = 'Not copied';
    }
  });
  buttons.append(copy);
  if (message.is_json && !byId('sending').hidden) {
    buttons.append(button('Edit and send', () => editMessage(message.text, row.dataset.from)));
  }
  const findings = table.findings.get(Number(row.dataset.line)) || [];
  cell.replaceChildren(
    ...findings.map((finding) => element('p', 'broken', `${finding.level} ${finding.rule}: ${visible(finding.text)}`)),
    buttons,
    element('pre', '', visible(message.text)),
  );
}
