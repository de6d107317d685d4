/** One conversation: its messages, the reply that streams, calls that wait for a person, and what a person can do. */
import { type FormEvent, useState } from 'react';
import type { ContentPart, PendingCall, ResolutionStep, StoredPart } from 'runchart';
import type { RemoteConversation } from 'runchart/client';
import { useConversation } from 'runchart/react';

// #region parts
function Parts({ conversation, content }: { conversation: RemoteConversation; content: readonly StoredPart[] }) {
  return content.map((part, index) => {
    // Stored content never changes.
    const key = `${index}`;
    if (part.type === 'text') return <span key={key}>{part.text}</span>;
    const url = conversation.attachmentURL(part);
    if (part.type === 'image') return <img key={key} src={url} alt="" />;
    return (
      <a key={key} href={url} download={part.name ?? 'file'}>
        {part.name ?? part.mediaType}
      </a>
    );
  });
}
// #endregion

function Step({ conversation, step }: { conversation: RemoteConversation; step: ResolutionStep }) {
  if (step.type !== 'ai-block')
    return (
      <p className="message user">
        <Parts conversation={conversation} content={step.content} />
      </p>
    );
  const calls = step.groups.flatMap((group) => group.calls);
  return (
    <>
      {step.text?.kind === 'assistant' && <p className="message">{step.text.text}</p>}
      {calls.map((call) => (
        <p className="call" key={call.callId}>
          {call.name} {JSON.stringify(call.args)}:{' '}
          {call.result ? <Parts conversation={conversation} content={call.result.content} /> : call.state}
        </p>
      ))}
    </>
  );
}

// #region approve
function Approval({ conversation, call }: { conversation: RemoteConversation; call: PendingCall }) {
  const decide = async (action: 'approve' | 'deny'): Promise<void> => {
    await conversation.decide({ callId: call.callId, suspension: call.suspension, action });
    if (conversation.pending.length === 0) conversation.resume();
  };
  return (
    <div className="approval">
      <p>
        May I {call.name} {JSON.stringify(call.args)}?
      </p>
      <button type="button" onClick={() => decide('approve')}>
        Approve
      </button>
      <button type="button" onClick={() => decide('deny')}>
        Deny
      </button>
    </div>
  );
}
// #endregion

async function partOf(file: File): Promise<ContentPart> {
  const data = new Uint8Array(await file.arrayBuffer());
  return { type: 'file', mediaType: file.type || 'application/octet-stream', name: file.name, data };
}

// #region chat
export function Chat({ conversation }: { conversation: RemoteConversation }) {
  const { view, inFlight, pending, status, connection } = useConversation(conversation);
  const [text, setText] = useState('');
  const [files, setFiles] = useState<File[]>([]);
  const [refusal, setRefusal] = useState('');
  const send = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    event.currentTarget.reset();
    setText('');
    setFiles([]);
    const words: ContentPart[] = text === '' ? [] : [{ type: 'text', text }];
    const { error } = await conversation.send([...words, ...(await Promise.all(files.map(partOf)))]).result;
    setRefusal(error?.message ?? '');
  };
  const steps = view.cycles.flatMap((cycle) =>
    cycle.steps.map((step, index) => ({ step, key: `${cycle.id} ${index}` })),
  );
  return (
    <>
      {connection === 'connecting' && <p role="status">Connecting again …</p>}
      {connection === 'failed' && <p role="alert">{conversation.connection.error?.message}</p>}
      {steps.map(({ step, key }) => (
        <Step key={key} conversation={conversation} step={step} />
      ))}
      {inFlight && <p className="message">{inFlight.text} …</p>}
      {pending.map((call) => (
        <Approval key={call.callId} conversation={conversation} call={call} />
      ))}
      {refusal && <p role="alert">{refusal}</p>}
      <form onSubmit={send}>
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="Message" />
        <input
          type="file"
          multiple
          onChange={(event) => setFiles([...(event.target.files ?? [])])}
          aria-label="Files"
        />
        {status === 'active' ? (
          <button type="button" onClick={() => conversation.cancel()}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={text === '' && files.length === 0}>
            Send
          </button>
        )}
      </form>
    </>
  );
}
// #endregion
