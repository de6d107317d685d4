/** Cases of the store suite for the contents of an entry. The rules are in storeCase.ts. */
import assert from 'node:assert/strict';
import { type LogEntry, sampleEntries } from '../../../machines/internal.ts';
import type { LogStore } from '../../stores/logStore.ts';
import { comesBack, extension, modelReply, notice, type StoreCase, stamped } from './storeCase.ts';

const LOOKS_LIKE_AN_ENTRY = '"}\n{"seq":1,"at":0,"type":"run-stop","reason":"completed"}\n';

export const contentCases: readonly StoreCase[] = [
  ['every type of entry comes back with all its fields', (store) => comesBack(store, sampleEntries('c'))],
  [
    'an entry of a type the library does not know yet comes back',
    (store) => comesBack(store, [{ ...notice('c', 0), type: 'later-kind', more: { a: [1] } } as unknown as LogEntry]),
  ],
  [
    'an entry keeps the conversation it is of, also in the log of another',
    (store) => comesBack(store, [notice('c', 0), notice('other', 1), notice('', 2)]),
  ],
  [
    'a run id is kept as it is, and null is none',
    (store) =>
      comesBack(
        store,
        ['run', '', 'null', null, '0'].map((runId, seq) => ({ ...notice('c', seq), runId })),
      ),
  ],
  [
    'times are kept as they are, whatever they are',
    (store) =>
      comesBack(
        store,
        [0, -1, 0.5, 1e300, 8.64e15 + 1].map((at, seq) => ({ ...notice('c', seq), at })),
      ),
  ],
  [
    'line breaks of every kind stay in their text, and no text becomes an entry',
    (store) => texts(store, ['a\nb', 'a\r\nb\r', 'a\u2028b\u2029c\u0085', '\n', LOOKS_LIKE_AN_ENTRY]),
  ],
  [
    'NUL and other control characters come back',
    (store) => texts(store, ['\0', 'a\0b\0', '\u0001\u0008\u000b\u001b[2J\u007f\u009b', '\ufffe\uffff']),
  ],
  [
    'lone surrogates come back as they are',
    (store) => texts(store, ['\ud800', 'a\udfff', '\udc00\ud800', '\ud83d \ude00', '\ud83d\ud83d\ude00']),
  ],
  [
    'characters are kept, not normalised: emoji, combining marks, byte order marks, directions',
    (store) => texts(store, ['🎉👩‍👩‍👧', 'é e\u0301 \ufb01', '\ufeffa\ufeff', '\u202eabc\u202c', 'İıſK', '\ufffd']),
  ],
  [
    'quotes, backslashes and what is special elsewhere come back',
    (store) => texts(store, ['"\\"\'`', '\\u0041\\n', "'; DROP TABLE c;--", '#{x} {{x}} %s $1 <x>&amp;', '%00%2F']),
  ],
  [
    'texts that look like other values stay texts',
    (store) => texts(store, ['null', 'true', '123', '1e3', '{"a":1}', '[]', '2020-01-01T00:00:00.000Z', 'undefined']),
  ],
  [
    'what is empty comes back empty: texts, lists, objects, keys',
    (store) => comesBack(store, [notice('c', 0, ''), extension(1, { '': '', a: [], b: {}, c: [[], [{}], ['']] })]),
  ],
  [
    'null is kept, and what is absent stays absent',
    async (store) => {
      const entries = await comesBack(store, [modelReply('c', 0, null), extension(1, { a: null, b: [null, null] })]);
      assert.deepEqual(Object.keys((entries[1] as { value: object } & LogEntry).value), ['a', 'b']);
    },
  ],
  [
    'numbers come back exactly',
    (store) => {
      const numbers = [0.1 + 0.2, Number.MAX_SAFE_INTEGER, -(2 ** 53), 1e21, 1.5e-9, 5e-324, Number.MAX_VALUE, 1 / 3];
      return comesBack(store, [extension(0, numbers)]);
    },
  ],
  [
    'whole numbers of more than 32 bits come back exactly',
    (store) => {
      const numbers = [
        2 ** 31 - 1,
        2 ** 31,
        -(2 ** 31) - 1,
        2 ** 32 - 1,
        2 ** 32,
        2 ** 32 + 1,
        2 ** 40 + 1,
        -(2 ** 50),
      ];
      const counts = { inputTokens: 2 ** 31 + 5, outputTokens: 2 ** 32 + 7, cachedInputTokens: 2 ** 31 };
      return comesBack(store, [extension(0, numbers), modelReply('c', 1, 1, counts)]);
    },
  ],
  [
    'a cost is kept to its last digit',
    (store) => {
      const costs = [0.1 + 0.2, 0.000_000_15, 0.123_456_789, 1 / 3, 1e-12, 1234.567_890_123];
      return comesBack(
        store,
        costs.map((cost, seq) => modelReply('c', seq, cost)),
      );
    },
  ],
  [
    'keys such as __proto__ are kept as values and change no prototype',
    async (store) => {
      const value = JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":null}');
      const entries = await comesBack(store, [extension(0, value)]);
      assert.equal(JSON.stringify(entries).includes('"__proto__":{"polluted":true}'), true);
      assert.equal(({} as { polluted?: boolean }).polluted, undefined);
    },
  ],
  [
    'keys may be any text',
    (store) => comesBack(store, [extension(0, { 'a.b': 1, $set: 2, '0': 3, 'a\nb': 4, '\0': 5, '\ud800': 6, é: 7 })]),
  ],
  [
    'fields of a value that are named like those of an entry are not taken for them',
    (store) =>
      comesBack(store, [extension(0, { seq: 9, at: 9, conversationId: 'x', runId: 'x', type: 'x', format: 'x' })]),
  ],
  [
    'values nested 100 levels deep come back, lists and objects',
    (store) => {
      let value: unknown = null;
      for (let level = 0; level < 50; level += 1) value = [{ in: value }];
      return comesBack(store, [extension(0, value)]);
    },
  ],
  [
    'an object of ten thousand keys and a list of as many members come back',
    async (store) => {
      const list = Array.from({ length: 10_000 }, (_, index) => index);
      const [entry] = await comesBack(store, [
        extension(0, { list, keys: Object.fromEntries(list.map((index) => [`key ${index}`, index])) }),
      ]);
      assert.equal(entry?.seq, 0);
    },
  ],
  [
    'an image in an entry comes back, four mebibytes of base64',
    (store) => {
      const image = { type: 'image', mediaType: 'image/png', data: 'iVBORw0K'.repeat(512 * 1024) } as const;
      return comesBack(store, [
        stamped('c', 0, { type: 'user-message', messageId: 'm', kind: 'direct', content: [image] }),
      ]);
    },
  ],
];

function texts(store: LogStore, list: string[]): Promise<LogEntry[]> {
  return comesBack(
    store,
    list.map((text, seq) => notice('c', seq, text)),
  );
}
