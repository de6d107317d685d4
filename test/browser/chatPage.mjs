/**
 * A page with `useChat` of the AI SDK, unmodified and in StrictMode. It is reloaded in the middle of a reply, and reports
 * what it showed.
 */
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { createElement as h, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

const transport = new DefaultChatTransport({ api: '/api/chat' });
/** The hook as the page last had it. */
let chat;

const Part = ({ part }) => {
  if (part.type === 'text') return h('span', null, part.text);
  if (!part.type.startsWith('tool-')) return null;
  const answer = (approved) => chat.addToolApprovalResponse({ id: part.approval.id, approved });
  return h(
    'code',
    { className: part.state },
    part.state === 'approval-requested'
      ? h('button', { type: 'button', id: 'approve', onClick: () => answer(true) }, 'Approve')
      : `${part.type} ${part.state} ${JSON.stringify(part.output ?? null)}`,
  );
};

function Chat({ messages }) {
  chat = useChat({
    id: 'c',
    messages,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  return h(
    'main',
    null,
    h('p', { id: 'status' }, chat.status),
    h('p', { id: 'error' }, chat.error?.message),
    ...chat.messages.map(({ id, role, parts }) =>
      h(
        'article',
        { key: id, className: role },
        parts.map((part, index) => h(Part, { key: `${id} ${index}`, part })),
      ),
    ),
  );
}

const until = async (what, holds) => {
  for (let tries = 0; tries < 6000; tries++) {
    const found = holds();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`${what} did not happen: ${document.body.textContent}`);
};
const articles = () => [...document.querySelectorAll('article')];
const texts = () => articles().map(({ className, textContent }) => `${className}: ${textContent}`);
const lastText = () => articles().at(-1)?.textContent ?? '';
const isReady = () => document.getElementById('status')?.textContent === 'ready';
const saved = JSON.parse(sessionStorage.getItem('saved') ?? '{}');
const save = (more) => sessionStorage.setItem('saved', JSON.stringify(Object.assign(saved, more)));

/** Sends, and waits for the whole reply. */
async function asked(content, begin = () => chat.sendMessage({ text: content })) {
  const before = lastText();
  void begin();
  const isReply = () => articles().at(-1)?.className === 'assistant' && lastText() !== before;
  await until(`the reply to ${content}`, () => isReply() && isReady());
}

async function beforeReload() {
  await asked('hello');
  await asked('pay');
  (await until('the question', () => document.getElementById('approve'))).click();
  await until('the payment', () => isReady() && lastText().includes('Paid.'));
  save({ phase: 'reloaded', first: texts() });
  void chat.sendMessage({ text: 'long' });
  await until('half of a reply', () => /\bword 5\b/.test(lastText()));
  save({ half: lastText() });
  location.reload();
  await new Promise(() => {});
}

async function afterReload() {
  await until('the resumed reply', () => lastText().includes('word 39') && isReady());
  const resumed = texts();
  void chat.sendMessage({ text: 'stop' });
  await until('a part of a reply', () => /^stop: .*word 3/.test(lastText()));
  await Promise.all([chat.stop(), fetch('/api/chat/c/stop', { method: 'POST' })]);
  await until('the stop', isReady);
  const stopped = texts();
  await asked('regenerate', () => chat.regenerate());
  const regenerated = texts();
  const { id } = chat.messages.at(-2);
  await asked('edited', () => chat.sendMessage({ text: 'hello', messageId: id }));
  const edited = texts();
  const errors = document.getElementById('error').textContent;
  save({ phase: 'history', resumed, stopped, regenerated, edited, errors });
  location.reload();
  await new Promise(() => {});
}

async function reloadedWhileWaiting(history) {
  void chat.sendMessage({ text: 'pay' });
  await until('the second question', () => isReady() && document.getElementById('approve'));
  save({ phase: 'waiting', history });
  location.reload();
  await new Promise(() => {});
}

async function main() {
  const messages = await (await fetch('/api/chat/c')).json();
  const root = createRoot(document.body.appendChild(document.createElement('div')));
  root.render(h(StrictMode, null, h(Chat, { messages })));
  await until('the page', () => document.getElementById('status'));
  // A person needs this long. Before it, the second mount of StrictMode would stop the message of the first one.
  await new Promise((resolve) => setTimeout(resolve, 300));
  if (saved.phase === undefined) return beforeReload();
  if (saved.phase === 'reloaded') return afterReload();
  await until('the history', isReady);
  if (saved.phase === 'history') return reloadedWhileWaiting(texts());
  const answer = articles().length;
  document.getElementById('approve').click();
  await until('the payment', () => isReady() && lastText().includes('Paid.'));
  const { phase: _, ...found } = saved;
  return { ...found, answered: texts().slice(answer - 2) };
}

const report = (value) => {
  const pre = document.createElement('pre');
  pre.id = 'result';
  pre.textContent = JSON.stringify(value);
  document.body.append(pre);
};
main().then(report, (error) => report({ error: String(error?.stack ?? error), saved }));
