/** The one card of the page: a call that asks, with its arguments and what a person may say. */

import { diffLines } from 'diff';
import { useEffect, useState } from 'preact/hooks';
import type { Json } from '../../../machines/vocabulary.ts';
import type { CallFacts } from '../../model/facts.ts';
import { STAND_IN } from '../../model/redactions.ts';
import { duration } from '../../model/words.ts';
import {
  type Card,
  cardKey,
  cards,
  chosenCard,
  decide,
  editing,
  giving,
  mayControl,
  seeCard,
  sent,
  settle,
} from '../../state/deciding.ts';
import { connection, isPast, open } from '../../state/store.ts';
import { groupIcon, Icon, Key, Mark } from '../marks.tsx';
import { Arguments } from './Steps.tsx';

const argsOf = ({ call, suspension }: Card): Json => suspension.args ?? call.args;

export function Decision({ card, ms }: { card: Card; ms: number }) {
  const { call, suspension } = card;
  const key = cardKey(call, suspension);
  useEffect(() => seeCard(key, performance.now()), [key]);
  const said = sent.value.get(key);
  const all = cards();
  const isChosen = all.length > 1 && all[chosenCard.value]?.call.callId === call.callId;
  const asks = suspension.reason === 'permission' ? 'asks to run' : 'asks';
  return (
    // biome-ignore lint/a11y/useSemanticElements: a group of controls, no field set of a form.
    <section
      class={isChosen ? 'decision is-chosen' : 'decision'}
      role="group"
      aria-label={`${call.name} ${asks}`}
      data-call={call.callId}
    >
      <header>
        <Mark name="waiting" size={14} />
        <Icon name={groupIcon(call.group)} />
        <b>{call.name}</b> <span>{asks}</span>
        <span class="time">{ms > 0 ? duration(ms) : ''}</span>
      </header>
      <div class="body">
        {editing.value === key ? (
          <Editor card={card} />
        ) : (
          <>
            <Arguments value={argsOf(card)} />
            {suspension.payload !== undefined && suspension.payload !== null && (
              <Arguments value={suspension.payload} />
            )}
            {said ? (
              <p class="receipt" role="status">
                {said.state === 'sending' ? 'sending…' : said.words}
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
  const key = cardKey(card.call, card.suspension);
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

/** A reason for a denial, or an answer. */
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
          if (event.key === 'Escape') giving.value = undefined;
        }}
      />
      <button type="submit" class="button primary">
        {what === 'reason' ? 'Deny' : 'Answer'}
      </button>
      {refused !== '' && <p class="refused">{refused}</p>}
    </form>
  );
}

function parsed(text: string): { value: Json } | { why: string } {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { why: error instanceof Error ? error.message : 'it is no JSON' };
  }
}

const LINE = 46;
/** How many lines a text takes once long ones are broken. */
const linesShown = (text: string): number =>
  text.split('\n').reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / LINE)), 0);

/** The arguments as JSON, with what was changed as a diff. */
function Editor({ card }: { card: Card }) {
  const before = JSON.stringify(argsOf(card), null, 2);
  const [text, setText] = useState(before);
  const [refused, refuse] = useState('');
  const run = async (): Promise<void> => {
    const read = parsed(text);
    if ('why' in read) return refuse(read.why);
    if (text.includes(STAND_IN))
      return refuse('[redacted] stands for a value that this page never had: it cannot be sent as one');
    refuse((await decide(card, { action: 'edit', args: read.value })) ?? '');
  };
  const leave = (): void => {
    editing.value = undefined;
  };
  return (
    <>
      <div class="editor">
        <textarea
          // biome-ignore lint/a11y/noAutofocus: one has just asked for it.
          autoFocus
          spellcheck={false}
          aria-label="Arguments as JSON"
          rows={Math.min(14, linesShown(text))}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') leave();
            if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) void run();
          }}
        />
        {text !== before && <Diff before={before} after={text} />}
      </div>
      {refused !== '' && <p class="refused">{refused}</p>}
      <p class="foot">Checked like the model's own arguments. The model is told that a person changed them.</p>
      <div class="actions">
        <button type="button" class="button primary" onClick={() => void run()}>
          Run with these <Key>{navigator.platform.startsWith('Mac') ? '⌘↵' : 'Ctrl ↵'}</Key>
        </button>
        <button type="button" class="quiet-button" onClick={() => setText(before)}>
          Reset
        </button>
        <button type="button" class="quiet-button reason" onClick={leave}>
          Cancel <Key>esc</Key>
        </button>
      </div>
    </>
  );
}

function Diff({ before, after }: { before: string; after: string }) {
  let old = 0;
  let now = 0;
  const rows = diffLines(before, after).flatMap((part) =>
    part.value
      .replace(/\n$/, '')
      .split('\n')
      .map((line) => {
        if (!part.added) old += 1;
        if (!part.removed) now += 1;
        return { line, look: part.added ? 'added' : part.removed ? 'removed' : '', number: part.removed ? old : now };
      }),
  );
  const changed = rows.filter(({ look }) => look !== '');
  return (
    <div class="diff" role="img" aria-label="What was changed">
      {changed.map(({ line, look, number }, index) => (
        <div key={index} class={look}>
          <span class="number">{number}</span>
          <code>{line}</code>
        </div>
      ))}
    </div>
  );
}

/** A call of which nobody knows whether it ran. */
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
        <Arguments value={call.args} />
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
