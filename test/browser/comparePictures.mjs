/** Images in a page, as a model receives them. Only the browser's own canvas can scale them. */
import { createAgent } from '../../src/index.ts';

const input = JSON.parse(document.getElementById('input').textContent);
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Red on the left, blue on the right. */
async function drawn(width, height, type) {
  const canvas = new OffscreenCanvas(width, height);
  const pen = canvas.getContext('2d');
  pen.fillStyle = '#f00';
  pen.fillRect(0, 0, width / 2, height);
  pen.fillStyle = '#00f';
  pen.fillRect(width / 2, 0, width / 2, height);
  return new Uint8Array(await (await canvas.convertToBlob({ type })).arrayBuffer());
}

/** Type, size, and which of red and blue is on the left and on the right. */
async function looksLike({ type, mediaType, data, text }) {
  if (type === 'text') return text;
  const picture = await createImageBitmap(new Blob([bytesOf(data)], { type: mediaType }));
  const { width, height } = picture;
  const pen = new OffscreenCanvas(width, height).getContext('2d');
  pen.drawImage(picture, 0, 0);
  const colour = (x) => {
    const [red, , blue] = pen.getImageData(x, height / 2, 1, 1).data;
    return red > blue ? 'red' : 'blue';
  };
  return `${mediaType} ${width}x${height} ${colour(0)} ${colour(width - 1)}`;
}

let asked = [];
const model = {
  id: 'page',
  async *stream({ messages }) {
    asked = messages.at(-1).content;
    yield { type: 'text-delta', text: 'Seen.' };
    yield { type: 'finish', reason: 'stop' };
  },
};
const small = await drawn(40, 20, 'image/png');
const images = [
  await drawn(3000, 1500, 'image/png'),
  await drawn(1000, 2500, 'image/jpeg'),
  bytesOf(input.turned),
  bytesOf(input.animated),
  bytesOf(input.bomb),
  small,
];
const conversation = await createAgent({ model }).open('page');
const content = images.map((data) => ({ type: 'image', mediaType: 'image/png', data }));
const { termination } = await conversation.send(content).result;
const message = conversation.log().find(({ type }) => type === 'user-message');
const shown = [];
for (const part of asked) shown.push(await looksLike(part));
const pre = document.createElement('pre');
pre.id = 'result';
pre.textContent = JSON.stringify({
  termination,
  references: message.content.every(({ data }) => data.startsWith('blob:')),
  shown,
  untouched: bytesOf(asked.at(-1).data).every((byte, at) => byte === small[at]),
  diagnostics: conversation.log().flatMap(({ type, code }) => (type === 'diagnostic' ? [code] : [])),
});
document.body.append(pre);
