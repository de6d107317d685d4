/**
 * The editor of a call's arguments: one box with the text and its diff. Invariant: the text is a value, and each input
 * computes the next value. The rows are derived from it, so removed lines appear between the editable ones.
 */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Json } from '../../../machines/vocabulary.ts';
import { pageJson } from '../../../src/inspect/excerpt.ts';
import { sourceText } from '../../../src/printable.ts';
import { changed, type DiffRow, diffRows, lineOfError } from '../../model/editedText.ts';
import { STAND_IN } from '../../model/redactions.ts';
import { Key } from '../stateMarks.tsx';

function parsed(text: string): { value: Json } | { why: string } {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { why: error instanceof Error ? error.message : 'it is no JSON' };
  }
}

interface EditorProps {
  args: Json;
  /** Returns the reason of a refusal, or undefined. */
  run(args: Json): Promise<string | undefined>;
  leave(): void;
}

export function ArgumentsEditor({ args, run, leave }: EditorProps) {
  // JSON escapes: the value is the same, and no character of it affects the page.
  const before = sourceText(JSON.stringify(pageJson([args])[0], null, 2));
  const [text, setText] = useState(before);
  const [refused, refuse] = useState('');
  const send = async (): Promise<void> => {
    const result = parsed(text);
    if ('why' in result) return refuse(result.why);
    if (text.includes(STAND_IN))
      return refuse('[redacted] stands for a value that this page never had: it cannot be sent as one');
    refuse((await run(result.value)) ?? '');
  };
  const change = (next: string): void => {
    setText(next);
    refuse('');
  };
  const line = lineOfError(text, refused);
  const rows = useMemo(
    () => diffRows(before, text, line === undefined ? undefined : { line, why: refused }),
    [before, text, line, refused],
  );
  return (
    <>
      <Box
        rows={rows}
        text={text}
        onChange={change}
        onKey={(event) => {
          if (event.key === 'Escape') leave();
          if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
            event.preventDefault();
            void send();
          }
        }}
      />
      {refused !== '' && line === undefined && <p class="refused">{refused}</p>}
      <p class="foot">Checked like the model's own arguments. The model is told that a person changed them.</p>
      <div class="actions">
        <button type="button" class="button primary" onClick={() => void send()}>
          Run with these <Key>{navigator.platform.startsWith('Mac') ? '⌘↵' : 'Ctrl ↵'}</Key>
        </button>
        <button type="button" class="quiet-button" onClick={() => change(before)}>
          Reset
        </button>
        <button type="button" class="quiet-button reason" onClick={leave}>
          Cancel <Key>esc</Key>
        </button>
      </div>
    </>
  );
}

/** Returns true for rows of the text: not for removed lines or refusals. */
const isLine = (row: Element): boolean => !row.matches('.removed, .refused');

/** Returns the offset in the text of a position in the box. */
function offsetOf(box: Element, node: Node, offset: number): number {
  let sum = 0;
  for (const [index, row] of [...box.children].entries()) {
    if (node === box && index >= offset) return sum;
    if (row.contains(node)) {
      if (!isLine(row)) return sum;
      const range = document.createRange();
      range.setStart(row, 0);
      range.setEnd(node, offset);
      return sum + range.toString().length;
    }
    if (isLine(row)) sum += (row.textContent ?? '').length + 1;
  }
  return sum;
}

/** Returns the range of an input: the selection, or for a caret the character that is deleted. */
function selectedBy(inputType: string, box: Element): number[] {
  const selection = getSelection();
  if (!selection?.anchorNode || !selection.focusNode) return [0];
  const [, direction] = /^delete.*(Backward|Forward)$/.exec(inputType) ?? [];
  if (direction && selection.isCollapsed) {
    const size = inputType.includes('Word') ? 'word' : inputType.includes('Line') ? 'lineboundary' : 'character';
    selection.modify('extend', direction.toLowerCase(), size);
  }
  const { anchorNode, anchorOffset, focusNode, focusOffset } = selection;
  return [offsetOf(box, anchorNode, anchorOffset), offsetOf(box, focusNode, focusOffset)];
}

function placeCaret(box: Element, offset: number): void {
  let remaining = offset;
  for (const row of box.children) {
    if (!isLine(row)) continue;
    const { length } = row.textContent ?? '';
    if (remaining <= length) {
      const within = row.firstChild instanceof Text ? row.firstChild : row;
      getSelection()?.collapse(within, within === row ? 0 : remaining);
      row.scrollIntoView({ block: 'nearest' });
      return;
    }
    remaining -= length + 1;
  }
}

function draw(box: Element, rows: readonly DiffRow[]): void {
  const made = rows.map(({ look, line, number }) => {
    const row = document.createElement('div');
    row.className = look;
    if (number !== undefined) row.dataset.number = `${number}`;
    if (look === 'removed' || look === 'refused') row.contentEditable = 'false';
    row.append(line === '' ? document.createElement('br') : line);
    return row;
  });
  box.replaceChildren(...made);
}

interface BoxProps {
  rows: readonly DiffRow[];
  text: string;
  onChange(text: string): void;
  onKey(event: KeyboardEvent): void;
}

interface Moment {
  text: string;
  caret: number;
}

/** The undo and redo history. */
function useHistory(text: string, onChange: (text: string) => void) {
  const caret = useRef<number | undefined>(undefined);
  const past = useRef<Moment[]>([]);
  const future = useRef<Moment[]>([]);
  const show = (next: Moment, opposite: Moment[]): void => {
    opposite.push({ text, caret: caret.current ?? 0 });
    caret.current = next.caret;
    onChange(next.text);
  };
  const step = (from: Moment[], to: Moment[]): void => {
    const next = from.pop();
    if (next) show(next, to);
  };
  return {
    caret,
    become(next: Moment): void {
      future.current = [];
      show(next, past.current);
    },
    undo: () => step(past.current, future.current),
    redo: () => step(future.current, past.current),
  };
}

function Box({ rows, text, onChange, onKey }: BoxProps) {
  const ref = useRef<HTMLDivElement>(null);
  const { caret, become, undo, redo } = useHistory(text, onChange);
  useLayoutEffect(() => {
    const box = ref.current;
    if (!box) return;
    draw(box, rows);
    if (caret.current !== undefined) placeCaret(box, Math.min(caret.current, text.length));
  }, [rows]);
  useLayoutEffect(() => ref.current?.focus(), []);
  const onBeforeInput = (event: InputEvent): void => {
    const box = ref.current;
    if (!box || event.isComposing || !event.cancelable) return;
    event.preventDefault();
    const ends = selectedBy(event.inputType, box);
    const inserted = event.data ?? event.dataTransfer?.getData('text/plain') ?? '';
    become(changed(text, ends, event.inputType, inserted));
  };
  /** Reads text that the browser has inserted itself: composed characters. */
  const readBack = (): void => {
    const box = ref.current;
    const at = getSelection();
    if (!box) return;
    const rows = [...box.childNodes].filter((row) => !(row instanceof Element) || isLine(row));
    const next = rows.map((row) => row.textContent ?? '').join('\n');
    become({ text: next, caret: at?.anchorNode ? offsetOf(box, at.anchorNode, at.anchorOffset) : next.length });
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a textarea has no place for the lines that were removed.
    <div
      ref={ref}
      class="editor"
      role="textbox"
      tabIndex={0}
      aria-multiline="true"
      aria-label="Arguments as JSON"
      contentEditable="plaintext-only"
      spellcheck={false}
      onBeforeInput={onBeforeInput}
      onInput={(event) => {
        if (!event.isComposing) readBack();
      }}
      onCompositionEnd={readBack}
      onKeyDown={(event) => {
        if (event.isComposing) return;
        if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'z') {
          event.preventDefault();
          event.shiftKey ? redo() : undo();
        } else onKey(event);
      }}
    />
  );
}
