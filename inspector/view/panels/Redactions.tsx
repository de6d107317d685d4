/** The redacted values of the log: where they are, and why. */
import { count, plural } from '../../../src/words/formats.ts';
import { isNarrow, moveTo, narrowTab, redactions, redactionsAreOpen, tab } from '../../state/pageState.ts';
import { Key } from '../stateMarks.tsx';
import { showEntry } from './Events.tsx';

const SHOWN = 200;

export function Redactions() {
  if (!redactionsAreOpen.value) return null;
  const all = redactions.value;
  const total = all.reduce((sum, one) => sum + one.count, 0);
  const close = (): void => {
    redactionsAreOpen.value = false;
  };
  return (
    <aside class="help redactions" aria-label="Redacted values">
      <header>
        <b>{plural(total, 'redacted value')}</b>
        <button type="button" class="quiet-button" onClick={close}>
          Close <Key>esc</Key>
        </button>
      </header>
      <p>
        Secrets of the agent were taken out before the log was written: the values are in no entry, and cannot be shown
        here.
      </p>
      <ul>
        {all.slice(0, SHOWN).map(({ index, seq, type, path, around }) => (
          <li key={`${index} ${path}`}>
            <button
              type="button"
              onClick={() => {
                close();
                if (isNarrow.value) narrowTab.value = 'events';
                else tab.value = 'events';
                moveTo(index);
                showEntry(index);
              }}
            >
              <span class="seq mono">{seq}</span>
              <span class="mono type">{type}</span>
              <span class="mono path">{path}</span>
              <span class="mono around">{around}</span>
            </button>
          </li>
        ))}
      </ul>
      {all.length > SHOWN && <p>and {count(all.length - SHOWN)} more</p>}
    </aside>
  );
}
