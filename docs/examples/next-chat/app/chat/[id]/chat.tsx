'use client';

/** One chat: its messages, the reply that streams, and calls that wait for a person. */
import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { type FormEvent, useState } from 'react';

const transport = new DefaultChatTransport({ api: '/api/chat' });

type Answer = (approvalId: string, approved: boolean) => void;

function Part({ part, role, answer }: { part: UIMessage['parts'][number]; role: string; answer: Answer }) {
  if (part.type === 'text') return <p className={`message ${role}`}>{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  if (part.state !== 'approval-requested')
    return (
      <p className="call">
        {part.type.replace('tool-', '')} {JSON.stringify(part.input)}: {String(part.output ?? part.state)}
      </p>
    );
  const { id } = part.approval;
  return (
    <div className="approval">
      <p>
        May I {part.type.replace('tool-', '')} {JSON.stringify(part.input)}?
      </p>
      <button type="button" onClick={() => answer(id, true)}>
        Approve
      </button>
      <button type="button" onClick={() => answer(id, false)}>
        Deny
      </button>
    </div>
  );
}

export function Chat({ id, history }: { id: string; history: UIMessage[] }) {
  const { messages, sendMessage, regenerate, stop, status, error, addToolApprovalResponse } = useChat({
    id,
    messages: history,
    transport,
    // A page that was reloaded in the middle of a reply shows the rest of it.
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const [text, setText] = useState('');
  const isBusy = status === 'submitted' || status === 'streaming';
  const send = (event: FormEvent): void => {
    event.preventDefault();
    setText('');
    void sendMessage({ text });
  };
  const stopReply = async (): Promise<void> => {
    // The first one ends the request of this page, the second one the run on the server.
    await Promise.all([stop(), fetch(`/api/chat/${id}/stop`, { method: 'POST' })]);
  };
  const answer: Answer = (approvalId, approved) => void addToolApprovalResponse({ id: approvalId, approved });
  return (
    <main>
      {messages.map((message) =>
        message.parts.map((part, index) => (
          <Part key={`${message.id} ${index}`} part={part} role={message.role} answer={answer} />
        )),
      )}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="Message" />
        {isBusy ? (
          <button type="button" onClick={stopReply}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={text === ''}>
            Send
          </button>
        )}
        {!isBusy && messages.length > 0 && (
          <button type="button" onClick={() => regenerate()}>
            Again
          </button>
        )}
      </form>
    </main>
  );
}
