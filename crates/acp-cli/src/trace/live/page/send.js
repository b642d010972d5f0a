// The box to send a message by hand.

function showSent(text, isFailed) {
  byId('send-result').textContent = text;
  byId('send-result').classList.toggle('failed', isFailed);
}

// Puts a message into the box, to be sent again by the same side.
function editMessage(text, from) {
  byId('sending').open = true;
  byId('send-text').value = text;
  byId('send-to').value = from === 'agent' ? 'client' : 'agent';
  let message = {};
  try {
    message = JSON.parse(text);
  } catch (error) {
    // Nested too deeply for the browser. The server checks it.
  }
  byId('send-expects').checked = 'method' in message && 'id' in message;
  byId('send-text').focus();
}

byId('send').addEventListener('submit', async (event) => {
  event.preventDefault();
  const to = byId('send-to').value;
  const command = { to, text: byId('send-text').value, expects_response: byId('send-expects').checked };
  byId('send-button').disabled = true;
  showSent('', false);
  try {
    const response = await request('/send', { method: 'POST', body: JSON.stringify(command) });
    const { id, waiting } = await response.json();
    const when = new Date().toLocaleTimeString();
    if (waiting) showSent(`Waiting: the ${to} does not read, or is in the middle of a message.`, false);
    else showSent(`Sent to the ${to} at ${when}${id ? `, with the id ${id}` : ''}.`, false);
  } catch (error) {
    showSent(`Not sent: ${error.message}`, true);
  }
  byId('send-button').disabled = false;
});
