/**
 * Turns the bytes of a `text/event-stream` body into server-sent events. Invariant: the same bytes give the same
 * events however they are split, in linear time. At most one event is buffered, within the limit.
 */
import { createParser } from 'eventsource-parser';
import { ModelError } from '../model.ts';

/** Bytes that may come without completing an event. */
export const EVENT_BYTES = 8 * 1024 * 1024;
/** Bytes decoded at a time, so that the limit applies before one huge network chunk becomes text. */
const SLICE_BYTES = 64 * 1024;
/** The most invalid lines between two events. */
const STRANGE_LINES = 1000;

/** `isCut`: the body ended before the blank line that completes the event, so its data may be incomplete. */
type OnEvent = (data: string, name: string | undefined, isCut: boolean) => void;

interface EventStream {
  push(bytes: Uint8Array): void;
  /** Called at the end of the body. */
  end(): void;
}

/**
 * Calls `onEvent` inside `push` and `end`, which pass on its errors. They throw ModelError frame-too-large and
 * bad-frame.
 */
export function eventStream(onEvent: OnEvent, limit: number = EVENT_BYTES): EventStream {
  const decoder = new TextDecoder();
  let sinceEvent = 0;
  let strangeLines = 0;
  let afterCr = false;
  let ending = false;

  const parser = createParser({
    onEvent(event) {
      sinceEvent = 0;
      strangeLines = 0;
      if (event.data.length > limit) throw tooLarge(limit);
      onEvent(event.data, event.event, ending);
    },
    onError() {
      strangeLines += 1;
      if (strangeLines > STRANGE_LINES) throw notEvents();
    },
  });

  // The parser receives only LF. With CR it searches both line ends in every line, which is quadratic in a chunk, and
  // a final CR would stay ambiguous.
  function feed(text: string): void {
    let rest = text;
    if (afterCr && rest !== '') {
      if (rest.charCodeAt(0) === 10) rest = rest.slice(1);
      afterCr = false;
    }
    if (rest.includes('\r')) {
      afterCr = rest.endsWith('\r');
      rest = rest.replace(/\r\n?/g, '\n');
    }
    if (rest !== '') parser.feed(rest);
  }

  return {
    push(bytes) {
      for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
        const slice = bytes.length <= SLICE_BYTES ? bytes : bytes.subarray(at, at + SLICE_BYTES);
        sinceEvent += slice.length;
        feed(decoder.decode(slice, { stream: true }));
        if (sinceEvent > limit) throw tooLarge(limit);
      }
    },
    end() {
      ending = true;
      parser.feed('\n\n');
    },
  };
}

const CHECK = 'Check the base URL and any proxy before it.';

const tooLarge = (limit: number): ModelError =>
  new ModelError({
    code: 'frame-too-large',
    message: `the reply holds an event of more than ${limit} bytes: this is no reply of a model. ${CHECK}`,
  });

const notEvents = (): ModelError =>
  new ModelError({
    code: 'bad-frame',
    message: `the reply is called an event stream, but ${STRANGE_LINES} lines in a row are no fields of one. ${CHECK}`,
  });
