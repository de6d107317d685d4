/**
 * A page with React in StrictMode, in which each component mounts twice: an agent of the page, and one behind the server
 * of the page. Reports what it showed.
 */
import { createElement as h, StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { connect } from '../../src/client/index.ts';
import { createAgent, defineTool } from '../../src/index.ts';
import { useAgent, useConversation } from '../../src/react/index.ts';
import { payingModel, payment } from './payingAgent.mjs';

const until = async (what, holds) => {
  for (let tries = 0; tries < 500; tries++) {
    const found = holds();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${what} did not happen: ${document.body.textContent}`);
};

/** Counts open resources. */
function counted(agent, counts) {
  return {
    async open(id) {
      counts.opened += 1;
      const conversation = await agent.open(id);
      const close = conversation.close.bind(conversation);
      conversation.close = async () => {
        counts.closed += 1;
        await close();
      };
      return conversation;
    },
  };
}

const textOf = ({ cycles }) =>
  cycles.flatMap(({ rounds }) => rounds.flatMap(({ output }) => output.texts.map(({ text }) => text))).join(' ');

function Chat({ conversation, name }) {
  const { view, inFlight, pending, status, connection } = useConversation(conversation);
  const [sent, setSent] = useState(0);
  const send = () => {
    setSent(sent + 1);
    void conversation.send(`message ${sent}`);
  };
  const decide = async () => {
    const [{ callId, suspension }] = pending;
    await conversation.decide({ callId, suspension, action: 'approve' });
    conversation.resume();
  };
  return h(
    'section',
    { id: name },
    h('p', { className: 'text' }, textOf(view)),
    h('p', { className: 'streamed' }, inFlight?.text ?? ''),
    h('p', { className: 'status' }, `${status} ${connection}`),
    h('button', { type: 'button', className: 'send', onClick: send }, 'Send'),
    h('button', { type: 'button', className: 'approve', onClick: decide, disabled: pending.length === 0 }, 'Approve'),
  );
}

function Opened({ agent, id, name }) {
  const conversation = useAgent(agent, id);
  return conversation ? h(Chat, { conversation, name }) : h('p', null, `${name} is opening`);
}

const element = (name, part) => document.querySelector(`#${name} .${part}`);
const shows = (name, part, text) => () => element(name, part)?.textContent?.includes(text);

/** Sends a message, approves the waiting call, and returns the text of the component. */
async function chatted(name) {
  await until(`${name} opens`, () => element(name, 'send'));
  element(name, 'send').click();
  await until(`${name} streams`, shows(name, 'streamed', 'thinking'));
  await until(`${name} waits`, shows(name, 'status', 'waiting'));
  element(name, 'approve').click();
  await until(`${name} ends`, shows(name, 'text', 'paid'));
  await until(`${name} rests`, shows(name, 'status', 'idle'));
  return element(name, 'text').textContent;
}

async function main() {
  const errors = [];
  addEventListener('error', ({ message }) => errors.push(message));
  addEventListener('unhandledrejection', ({ reason }) => errors.push(String(reason)));
  const [own, remote] = [
    { opened: 0, closed: 0 },
    { opened: 0, closed: 0 },
  ];
  const agent = createAgent({ model: payingModel(), tools: [defineTool(payment)] });
  const client = connect({ baseURL: location.origin });
  const [counting, countingRemote] = [counted(agent, own), counted(client, remote)];
  const onCaughtError = (error) => errors.push(String(error));
  const root = createRoot(document.body.appendChild(document.createElement('div')), { onCaughtError });
  const app = (...children) => root.render(h(StrictMode, null, ...children));
  app(
    h(Opened, { agent: counting, id: 'a', name: 'own', key: 'own' }),
    // Two components share the conversation of an id.
    h(Opened, { agent: counting, id: 'a', name: 'twin', key: 'twin' }),
    h(Opened, { agent: countingRemote, id: 'a', name: 'remote', key: 'remote' }),
  );
  const texts = [await chatted('own'), await chatted('remote')];
  const twin = element('twin', 'text').textContent;
  // The connection is cut, and the page then receives the acts of another client.
  await fetch('/cut');
  await until('another message', shows('remote', 'text', 'paid thinking paid'));
  texts.push(element('remote', 'text').textContent);
  app();
  await until('the close', () => own.closed === 1 && remote.closed === 1);
  // The components have released the conversation, so it can be opened again.
  const again = await agent.open('a');
  const { length } = again.log();
  await again.close();
  return { texts, twin, own, remote, errors, isWhole: length > 10 };
}

const report = (value) => {
  const pre = document.createElement('pre');
  pre.id = 'result';
  pre.textContent = JSON.stringify(value);
  document.body.append(pre);
};
main().then(report, (error) => report({ error: String(error?.stack ?? error) }));
