/** The content of an empty page, and the list of keys. */
import { chooseFile, copy, isServed } from '../state/logFiles.ts';
import { helpIsOpen } from '../state/pageState.ts';
import { lettersAreOn, switchLetters } from '../state/preferences.ts';
import { Icon, Key } from './stateMarks.tsx';

const WAYS: readonly { head: string; code: string; words: string }[] = [
  {
    head: 'Watch the demo',
    code: 'npx runchart demo --inspect',
    words: 'A scripted model, real tools, one approval. No key.',
  },
  {
    head: 'Run a prompt',
    code: 'npx runchart run --inspect -m <model> "…"',
    words: 'With tools that read the working directory.',
  },
  {
    head: 'From your code',
    code: 'const inspector = await startInspector();\ninspector.attach(conversation);',
    words: 'At any time, also in the middle of a run.',
  },
];

export function Start() {
  return (
    <div class="start">
      <h2>Waiting for a run</h2>
      <p class="lead">
        {isServed()
          ? 'This page is connected and listens. Start an agent in any of these ways.'
          : 'Open a log, or start an agent in any of these ways.'}
      </p>
      {WAYS.map(({ head, code, words }) => (
        <section key={head}>
          <h3>{head}</h3>
          <pre>
            <button type="button" class="code" aria-label={`Copy: ${code}`} onClick={() => void copy(code, 'command')}>
              {code}
            </button>
          </pre>
          <p>{words}</p>
        </section>
      ))}
      <button type="button" class="drop" onClick={chooseFile}>
        <Icon name="drop" size={16} />
        <span>
          Drop a <code>.jsonl</code> log here, or <b>choose a file</b> <Key>O</Key>
          <br />
          <span class="quiet">It is read in this page and sent nowhere.</span>
        </span>
      </button>
    </div>
  );
}

const KEYS: readonly (readonly [string, string])[] = [
  ['J K', 'next, previous entry; with ⇧ by cycle, with ⌥ by durable step'],
  ['space', 'play or pause'],
  ['L', 'live, or the end of a file'],
  ['Home End', 'first, last entry'],
  ['A D E', 'allow, deny, edit what waits; ⇧D with a reason, R answers'],
  ['1 … 9', 'choose among several cards'],
  ['X X', 'cancel the run, where control is allowed'],
  ['G then C S E Q X T', 'go to chart, steps, events, sequence, context, tree'],
  ['arrows', 'in the chart along its edges, ↑ ← also to the compound around; ↵ opens and folds it; elsewhere by entry'],
  ['↑ ↓ ← →', 'in the tree to rows; ← → or space fold and unfold, ↵ chooses'],
  ['[ ]', 'outer, inner actor'],
  ['F + - 0', 'fit, zoom, 1:1'],
  ['C', 'coverage'],
  ['T', 'time line'],
  ['M', 'make a test of the path so far'],
  ['S', 'save the log up to here'],
  ['O', 'open a log'],
  ['/', 'search'],
  ['⇧T', 'dark or light'],
];

export function Help() {
  if (!helpIsOpen.value) return null;
  return (
    <aside class="help" aria-label="All keys">
      <header>
        <b>Keys</b>
        <button
          type="button"
          class="quiet-button"
          onClick={() => {
            helpIsOpen.value = false;
          }}
        >
          Close <Key>esc</Key>
        </button>
      </header>
      <label class="switch">
        <input type="checkbox" checked={lettersAreOn.value} onChange={switchLetters} />
        Keys that are a single letter, digit or sign
      </label>
      <dl class={lettersAreOn.value ? '' : 'is-off'}>
        {KEYS.map(([keys, words]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </aside>
  );
}
