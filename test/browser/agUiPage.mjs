/** A page with `HttpAgent` of AG-UI, unmodified: a message, then one whose call a person approves. */
import { HttpAgent } from '@ag-ui/client';

async function main() {
  const page = new HttpAgent({ url: '/ag-ui', threadId: 'c' });
  const lengths = new Set();
  page.subscribe({ onTextMessageContentEvent: ({ textMessageBuffer }) => void lengths.add(textMessageBuffer.length) });
  page.addMessage({ id: 'u1', role: 'user', content: 'hello' });
  await page.runAgent();
  page.addMessage({ id: 'u2', role: 'user', content: 'pay' });
  const interrupts = [];
  await page.runAgent({}, { onRunFinishedEvent: ({ event }) => void interrupts.push(...event.outcome.interrupts) });
  const resume = interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload: { approved: true } }));
  await page.runAgent({ resume });
  const messages = page.messages.map(({ role, content }) => [role, content]);
  return { grows: lengths.size > 5, messages, interrupts: interrupts.length };
}

const report = (value) => {
  const pre = document.createElement('pre');
  pre.id = 'result';
  pre.textContent = JSON.stringify(value);
  document.body.append(pre);
};
main().then(report, (error) => report({ error: String(error?.stack ?? error) }));
