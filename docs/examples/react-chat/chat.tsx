/** One conversation: its messages, the reply that streams, calls that wait for a person, and what a person can do. */
import { type FormEvent, useState } from 'react';
import type { ContentPart, PendingCall, ResolutionStep } from 'runchart';
import type { RemoteConversation } from 'runchart/client';
import { useConversation } from 'runchart/react';

type Part = { readonly type: string; readonly text?: string };
const textOf = (content: readonly (ContentPart | Part)[]): string =>
  content.map((part) => ('text' in part ? part.text : '')).join('');

function Step({ step }: { step: ResolutionStep }) {
  if (step.type !== 'ai-block') return <p className="message user">{textOf(step.content)}</p>;
  const calls = step.groups.flatMap((group) => group.calls);
  return (
    <>
      {step.text?.kind === 'assistant' && <p className="message">{step.text.text}</p>}
      {calls.map((call) => (
        <p className="call" key={call.callId}>
          {call.name} {JSON.stringify(call.args)}: {call.result ? textOf(call.result.content) : call.state}
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

// #region chat
export function Chat({ conversation }: { conversation: RemoteConversation }) {
  const { view, inFlight, pending, status, connection } = useConversation(conversation);
  const [text, setText] = useState('');
  const [refusal, setRefusal] = useState('');
  const send = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setText('');
    const { error } = await conversation.send(text).result;
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
        <Step key={key} step={step} />
      ))}
      {inFlight && <p className="message">{inFlight.text} …</p>}
      {pending.map((call) => (
        <Approval key={call.callId} conversation={conversation} call={call} />
      ))}
      {refusal && <p role="alert">{refusal}</p>}
      <form onSubmit={send}>
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="Message" />
        {status === 'active' ? (
          <button type="button" onClick={() => conversation.cancel()}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={text === ''}>
            Send
          </button>
        )}
      </form>
    </>
  );
}
// #endregion
