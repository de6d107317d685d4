/**
 * `runchart/ai-sdk`: a model of any AI SDK provider, specification version 2 or 3. Invariant: a call is one
 * `doStream` without its own retry, and every failure is a ModelError. A provider that ignores an abort is abandoned
 * at once, and its stream is cancelled.
 */
import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider';
import type { Json } from '../../../machines/vocabulary.ts';
import { type ImageLimits, imageLimitsOf } from '../../content/imageFormat.ts';
import { ConfigurationError } from '../../errors.ts';
import {
  checkOptionsOf,
  display,
  hasMethods,
  isObject,
  number,
  object,
  strings,
  type Validator,
} from '../../validation.ts';
import { abortGate } from '../abortGate.ts';
import type { Model, ModelPart, ModelRequest, Prices } from '../model.ts';
import { secretsIn, withSecrets } from '../secrets.ts';
import { streamedError, thrownError } from './failure.ts';
import { callOptions, type Sent, type SupportedUrls } from './prompt.ts';
import { SdkReply, type StreamPart } from './reply.ts';

export interface AiSdkSettings {
  /** Used if the request names none. */
  temperature?: number;
  /** Sent with every request, by the provider's name. */
  providerOptions?: { [provider: string]: Json };
  /** The most tokens of input and output in one call. */
  contextWindow?: number;
  /** The output limit if a request names none. */
  maxOutputTokens?: number;
  prices?: Prices;
  /** Limits for images. Default: 2,000 pixels on the longer side and 4.5 MiB encoded. */
  imageLimits?: ImageLimits;
  /** Values that must never be logged. Credentials in the provider's headers are found automatically. */
  secrets?: string[];
}

const tokens: Validator = {
  expected: 'a positive whole number of tokens',
  test: (value) => Number.isInteger(value) && Number(value) > 0,
};
const group: Validator = { expected: 'an object', test: isObject };
const settingsValidator = object({
  temperature: number(0),
  providerOptions: {
    expected: "an object of objects, by the provider's name",
    test: (value) => isObject(value) && Object.values(value).every(isObject),
    secret: true,
  },
  contextWindow: tokens,
  maxOutputTokens: tokens,
  prices: group,
  imageLimits: group,
  secrets: strings,
});

/** The part of a provider's model that is used, in both versions. */
interface SdkModel {
  readonly specificationVersion: unknown;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls?: PromiseLike<SupportedUrls> | SupportedUrls;
  doStream(options: LanguageModelV3CallOptions): PromiseLike<{ stream: ReadableStream<StreamPart> }>;
}

function sdkModel(given: object): SdkModel {
  const model = given as SdkModel & LanguageModelV3;
  if (!isObject(given) || !hasMethods(given, 'doStream')) {
    throw new ConfigurationError(
      `aiSdkModel() needs a language model of an AI SDK provider, such as anthropic('…'), got ${isObject(given) ? 'an object without doStream' : typeof given}`,
    );
  }
  const { specificationVersion: version } = model as SdkModel;
  if (version !== 'v2' && version !== 'v3') {
    throw new ConfigurationError(
      `aiSdkModel() takes specification versions v2 and v3, got ${display(version)}: install a provider of AI SDK 5 or 6`,
    );
  }
  if (typeof model.modelId !== 'string' || model.modelId === '' || typeof model.provider !== 'string') {
    throw new ConfigurationError('aiSdkModel(): the language model must have a modelId and a provider');
  }
  return model;
}

/**
 * A model of an AI SDK provider. Attachments of the provider (signed reasoning, encrypted content) are kept in
 * `extra` and returned to it unchanged. Printing the model shows neither the provider nor a secret. Throws
 * ConfigurationError for another object, and for an unknown or invalid setting.
 */
export function aiSdkModel(languageModel: object, settings: AiSdkSettings = {}): Model {
  const source = sdkModel(languageModel);
  checkOptionsOf('aiSdkModel()', settings, settingsValidator);
  const { contextWindow, maxOutputTokens, prices, imageLimits, temperature, providerOptions } = settings;
  const id = source.modelId;
  if (imageLimits) imageLimitsOf({ id, imageLimits });
  const secrets = [...(settings.secrets ?? [])];
  const sent: Sent = {
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    // Each value was validated. The declared type is wider, so that settings can be read from a file.
    ...(providerOptions && { providerOptions: providerOptions as NonNullable<Sent['providerOptions']> }),
  };
  const model: Model = {
    id,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(prices && { prices }),
    ...(imageLimits && { imageLimits }),
    stream: (request, { signal }) => streamed({ source, secrets, sent }, request, signal),
  };
  return withSecrets(model, secrets);
}

interface Call {
  source: SdkModel;
  secrets: string[];
  sent: Sent;
}

/** Providers keep headers with keys in their configuration. They are read for each call, because a key may change. */
async function learnSecrets({ source, secrets }: Call): Promise<void> {
  try {
    const { headers } = (source as { config?: { headers?: unknown } }).config ?? {};
    const given: unknown = await (typeof headers === 'function' ? headers() : headers);
    if (!isObject(given)) return;
    const texts = Object.entries(given).filter((field): field is [string, string] => typeof field[1] === 'string');
    for (const secret of secretsIn(Object.fromEntries(texts))) if (!secrets.includes(secret)) secrets.push(secret);
  } catch {
    // A provider without a key fails when it is called.
  }
}

async function open(call: Call, request: ModelRequest, signal: AbortSignal) {
  await learnSecrets(call);
  const { source, sent } = call;
  const supportedUrls = (await source.supportedUrls) ?? {};
  const options = callOptions(request, { provider: source.provider, supportedUrls }, sent);
  const { stream } = await source.doStream({ ...options, abortSignal: signal });
  return stream.getReader();
}

async function* streamed(call: Call, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart, void> {
  const gate = abortGate(signal);
  const parts: ModelPart[] = [];
  const reply = new SdkReply((part) => parts.push(part), call.source.provider);
  let close = (): void => {};
  try {
    gate.check();
    // A source that cannot be cancelled is ignored.
    const reader = await gate.race(
      (own) => open(call, request, own),
      (late) => void late.cancel().catch(() => {}),
    );
    close = () => void reader.cancel().catch(() => {});
    for (let more = true; more; ) {
      const read = await gate.race(
        () => reader.read(),
        () => {},
      );
      if (read.done) reply.end();
      else if (read.value?.type === 'error') throw streamedError(read.value.error, call.secrets, Date.now());
      else reply.take(read.value);
      more = !read.done && !reply.ended;
      for (const part of parts.splice(0)) {
        yield part;
        gate.check();
      }
    }
  } catch (error) {
    gate.check();
    throw thrownError(error, call.secrets, Date.now());
  } finally {
    gate.close();
    close();
  }
}
