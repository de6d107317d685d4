/** The card of a waiting call, with its arguments and the possible decisions. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Json } from '../../../machines/vocabulary.ts';
import { duration } from '../../../src/words/formats.ts';
import { argsAt } from '../../model/callStates.ts';
import type { CallFacts } from '../../model/logFacts.ts';
import {
  type Card,
  cards,
  chosenCard,
  decide,
  editing,
  giving,
  mayControl,
  sent,
  settle,
  showCard,
} from '../../state/decisionCards.ts';
import { connection, cursor, isPast, open } from '../../state/pageState.ts';
import { groupIcon, Icon, Key, Mark } from '../stateMarks.tsx';
import { ArgumentsEditor } from './ArgumentsEditor.tsx';
import { Arguments } from './CallDetail.tsx';

const argsOf = ({ call, suspension }: Card): Json => suspension.args ?? call.args;

export function Decision({ card, ms }: { card: Card; ms: number }) {
  const { key, call, suspension } = card;
  useEffect(() => showCard(key, performance.now()), [key]);
  const sentState = sent.value.get(key);
  const all = cards();
  const at = all.findIndex((one) => one.key === key);
  const isChosen = all.length > 1 && chosenCard.value === key;
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isChosen) place.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  const asks = suspension.reason === 'permission' ? 'asks to run' : 'asks';
  return (
    // biome-ignore lint/a11y/useSemanticElements: a group of controls, no field set of a form.
    <section
      ref={place}
      class={isChosen ? 'decision is-chosen' : 'decision'}
      role="group"
      aria-label={`${call.name} ${asks}`}
      data-call={call.callId}
      onFocusCapture={() => {
        chosenCard.value = key;
      }}
    >
      <header>
        <Mark name="waiting" size={14} />
        <Icon name={groupIcon(call.group)} />
        <b>{call.name}</b> <span>{asks}</span>
        <span class="time">{ms > 0 ? duration(ms) : ''}</span>
        {all.length > 1 && mayControl() && at >= 0 && at < 9 && <Key>{`${at + 1}`}</Key>}
      </header>
      <div class="body">
        {editing.value === key ? (
          <ArgumentsEditor
            args={argsOf(card)}
            run={(args) => decide(card, { action: 'edit', args })}
            leave={() => {
              editing.value = undefined;
            }}
          />
        ) : (
          <>
            <Arguments value={argsOf(card)} />
            {suspension.payload !== undefined && suspension.payload !== null && (
              <Arguments value={suspension.payload} />
            )}
            {sentState ? (
              <p class="receipt" role="status">
                {sentState.state === 'sending' ? 'sending…' : sentState.words}
              </p>
            ) : giving.value?.key === key ? (
              <Words card={card} what={giving.value.what} />
            ) : (
              <Actions card={card} />
            )}
            <Foot card={card} />
          </>
        )}
      </div>
    </section>
  );
}

function Foot({ card: { call, suspension } }: { card: Card }) {
  const others = cards().length > 1 || open.value?.status === 'active';
  const next = others ? 'The other calls go on.' : mayControl() ? 'A decision resumes the run.' : '';
  return (
    <p class="foot">
      {suspension.reason} · {call.callId} · suspension {suspension.number}.{' '}
      {call.starts.length === 0 ? 'Nothing has run yet. ' : ''}
      {next}
    </p>
  );
}

function Actions({ card }: { card: Card }) {
  const { key } = card;
  if (!mayControl()) {
    if (isPast.value) return <p class="quiet">This is the past: decide at the end of the log.</p>;
    if (open.value?.source === 'file') return <p class="quiet">A file: nothing can be decided here.</p>;
    if (connection.value.state === 'lost') return <p class="quiet">Not connected.</p>;
    return <p class="quiet">Read-only. Start with control to decide here.</p>;
  }
  const give = (what: 'reason' | 'answer') => () => {
    giving.value = { key, what };
  };
  return (
    <div class="actions">
      <button type="button" class="button primary" onClick={() => void decide(card, { action: 'approve' })}>
        Allow <Key>A</Key>
      </button>
      <button type="button" class="button" onClick={() => void decide(card, { action: 'deny' })}>
        Deny <Key>D</Key>
      </button>
      <button
        type="button"
        class="button"
        onClick={() => {
          editing.value = key;
        }}
      >
        Edit <Key>E</Key>
      </button>
      {card.suspension.reason !== 'permission' && (
        <button type="button" class="button" onClick={give('answer')}>
          Answer <Key>R</Key>
        </button>
      )}
      <button type="button" class="quiet-button reason" onClick={give('reason')}>
        Reason… <Key>⇧D</Key>
      </button>
    </div>
  );
}

/** The input for the reason of a denial, or for an answer. */
function Words({ card, what }: { card: Card; what: 'reason' | 'answer' }) {
  const [text, setText] = useState('');
  const [refused, refuse] = useState('');
  const send = async (): Promise<void> => {
    const answer =
      what === 'reason' ? ({ action: 'deny', reason: text } as const) : ({ action: 'answer', payload: text } as const);
    refuse((await decide(card, answer)) ?? '');
  };
  return (
    <form
      class="give"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <input
        // biome-ignore lint/a11y/noAutofocus: one has just asked for it.
        autoFocus
        aria-label={what === 'reason' ? 'Reason for the denial' : 'Answer'}
        placeholder={what === 'reason' ? 'Why not? The model is told.' : 'Your answer'}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape' && !event.isComposing) giving.value = undefined;
        }}
      />
      <button type="submit" class="button primary">
        {what === 'reason' ? 'Deny' : 'Answer'}
      </button>
      <button
        type="button"
        class="quiet-button"
        onClick={() => {
          giving.value = undefined;
        }}
      >
        Cancel <Key>esc</Key>
      </button>
      {refused !== '' && <p class="refused">{refused}</p>}
    </form>
  );
}

/** A call with an unknown outcome. */
export function Settlement({ call }: { call: CallFacts }) {
  const [result, setResult] = useState('');
  return (
    <section class="decision is-unknown" aria-label={`${call.name}: outcome unknown`}>
      <header>
        <Mark name="cancelled" size={14} />
        <Icon name={groupIcon(call.group)} />
        <b>{call.name}</b> <span>may have run</span>
      </header>
      <div class="body">
        <Arguments value={argsAt(call, cursor.value)} />
        {mayControl() ? (
          <div class="actions">
            <input
              aria-label="Its result"
              placeholder="its result"
              value={result}
              onInput={(event) => setResult(event.currentTarget.value)}
            />
            <button type="button" class="button" onClick={() => void settle(call, { ran: result })}>
              It ran
            </button>
            <button type="button" class="button" onClick={() => void settle(call, { didNotRun: true })}>
              It did not
            </button>
            <button type="button" class="button" onClick={() => void settle(call, { retry: true })}>
              Try once more
            </button>
          </div>
        ) : (
          <p class="quiet">Read-only. Start with control to settle it here.</p>
        )}
      </div>
    </section>
  );
}
