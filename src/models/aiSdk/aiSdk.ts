/**
 * `runchart/ai-sdk`: a model of any AI SDK provider, specification version 2, 3 or 4. Invariant: a call is one
 * `doStream` without its own retry, and every failure is a ModelError. A provider that ignores an abort is abandoned
 * at once, and its stream is cancelled.
 */
import type { LanguageModelV3CallOptions } from '@ai-sdk/provider';
import type { Json } from '../../../machines/vocabulary.ts';
import { ConfigurationError } from '../../errors.ts';
import { checkOptionsOf, display, hasMethods, isObject, number, object, strings } from '../../validation.ts';
import type { Model, ModelPart, ModelRequest } from '../model.ts';
import { abortableCall } from '../wire/abortableCall.ts';
import { secretsIn } from '../wire/secrets.ts';
import { type VendorModelOptions, vendorModel, vendorModelValidators } from '../wire/vendorModel.ts';
import { streamedError, thrownError } from './sdkErrors.ts';
import { callOptions, type Sent, type SupportedUrls } from './sdkPrompt.ts';
import { SdkReply, type StreamPart } from './sdkReply.ts';

/** The settings of `aiSdkModel`. */
export interface AiSdkSettings extends VendorModelOptions {
  /** Used if the request names none. */
  temperature?: number;
  /** Sent with every request, by the provider's name. */
  providerOptions?: { [provider: string]: Json };
  /** Values that must never be logged. Credentials in the provider's headers are found automatically. */
  secrets?: string[];
}

const settingsValidator = object({
  temperature: number(0),
  providerOptions: {
    expected: "an object of objects, by the provider's name",
    test: (value) => isObject(value) && Object.values(value).every(isObject),
    secret: true,
  },
  ...vendorModelValidators,
  secrets: strings,
});

/** A language model of an AI SDK provider, such as `anthropic('claude-sonnet-5')`. */
export interface AiSdkLanguageModel {
  /** The version of the AI SDK's model interface. */
  readonly specificationVersion: 'v2' | 'v3' | 'v4';
  /** The name of the model at its provider. */
  readonly modelId: string;
  /** Starts one streamed reply. */
  doStream(options: never): PromiseLike<unknown>;
}

/** Providers whose names differ in the GenAI conventions. A later entry is for names that an earlier one does not match. */
const TRACED: readonly (readonly [RegExp, string])[] = [
  [/^google\.vertex/, 'gcp.vertex_ai'],
  [/^(google|gemini)\b/, 'gcp.gemini'],
  [/bedrock/, 'aws.bedrock'],
  [/^azure\b/, 'azure.ai.openai'],
  [/^mistral\b/, 'mistral_ai'],
  [/^xai\b/, 'x_ai'],
];
const tracedProvider = (provider: string): string =>
  TRACED.find(([pattern]) => pattern.test(provider))?.[1] ?? (provider.split('.')[0] as string);

/** The part of a provider's model that is used, in every version. */
interface SdkModel {
  readonly specificationVersion: AiSdkLanguageModel['specificationVersion'];
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls?: PromiseLike<SupportedUrls> | SupportedUrls;
  doStream(options: LanguageModelV3CallOptions): PromiseLike<{ stream: ReadableStream<StreamPart> }>;
}

const VERSIONS: readonly unknown[] = ['v2', 'v3', 'v4'];

function sdkModel(languageModel: AiSdkLanguageModel): SdkModel {
  const model = languageModel as AiSdkLanguageModel & SdkModel;
  if (!isObject(languageModel) || !hasMethods(languageModel, 'doStream')) {
    const got = isObject(languageModel) ? 'an object without doStream' : typeof languageModel;
    throw new ConfigurationError(
      `aiSdkModel() needs a language model of an AI SDK provider, such as anthropic('…'), got ${got}`,
    );
  }
  const { specificationVersion: version } = model;
  if (!VERSIONS.includes(version)) {
    throw new ConfigurationError(
      `aiSdkModel() takes specification versions v2, v3 and v4, got ${display(version)}: install a provider of AI SDK 5, 6 or 7`,
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
export function aiSdkModel(languageModel: AiSdkLanguageModel, settings: AiSdkSettings = {}): Model {
  const source = sdkModel(languageModel);
  checkOptionsOf('aiSdkModel()', settings, settingsValidator);
  const { maxOutputTokens, temperature, providerOptions } = settings;
  const secrets = [...(settings.secrets ?? [])];
  const sent: Sent = {
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    // Each value was validated. The declared type is wider, so that settings can be read from a file.
    ...(providerOptions && { providerOptions: providerOptions as NonNullable<Sent['providerOptions']> }),
  };
  // Providers of Anthropic's models enforce a schema with a tool of their own, which leaves out the agent's tools.
  const nativeOutput = !/anthropic|bedrock/.test(source.provider);
  const stream: Model['stream'] = (request, { signal }) => replyParts({ source, secrets, sent }, request, signal);
  const { provider } = source;
  return vendorModel(source.modelId, settings, secrets, stream, {
    nativeOutput,
    provider: tracedProvider(provider),
    defaultAccepts: acceptedBy(provider),
  });
}

/** The media types that the providers' packages convert. They fail for other files. */
function acceptedBy(provider: string): readonly string[] {
  const documents = ['image/*', 'application/pdf'];
  if (/google|vertex/.test(provider)) return [...documents, 'audio/*', 'video/*'];
  return /anthropic|bedrock|\.responses/.test(provider)
    ? documents
    : [...documents, 'audio/wav', 'audio/mpeg', 'audio/mp3'];
}

interface Call {
  source: SdkModel;
  secrets: string[];
  sent: Sent;
}

/** Providers keep headers with keys in their configuration. They are read for each call, because a key may change. */
async function addHeaderSecrets({ source, secrets }: Call): Promise<void> {
  try {
    const { config = {} } = source as { config?: { headers?: unknown } };
    const headers: unknown = await (typeof config.headers === 'function' ? config.headers() : config.headers);
    if (!isObject(headers)) return;
    const texts = Object.entries(headers).filter((field): field is [string, string] => typeof field[1] === 'string');
    for (const secret of secretsIn(Object.fromEntries(texts))) if (!secrets.includes(secret)) secrets.push(secret);
  } catch {
    // A provider without a key fails when it is called.
  }
}

async function open(call: Call, request: ModelRequest, signal: AbortSignal) {
  await addHeaderSecrets(call);
  const { source, sent } = call;
  const supportedUrls = (await source.supportedUrls) ?? {};
  const { provider, specificationVersion: version } = source;
  const options = callOptions(request, { provider, version, supportedUrls }, sent);
  const { stream } = await source.doStream({ ...options, abortSignal: signal });
  return stream.getReader();
}

async function* replyParts(call: Call, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart, void> {
  const abortable = abortableCall(signal);
  const parts: ModelPart[] = [];
  const reply = new SdkReply((part) => parts.push(part), call.source.provider);
  let close = (): void => {};
  try {
    abortable.throwIfAborted();
    // A source that cannot be cancelled is ignored.
    const reader = await abortable.race(
      (own) => open(call, request, own),
      (late) => void late.cancel().catch(() => {}),
    );
    close = () => void reader.cancel().catch(() => {});
    for (let more = true; more; ) {
      const read = await abortable.race(
        () => reader.read(),
        () => {},
      );
      if (read.done) reply.end();
      else if (read.value?.type === 'error') throw streamedError(read.value.error, call.secrets, Date.now());
      else reply.take(read.value);
      more = !read.done && !reply.ended;
      for (const part of parts.splice(0)) {
        yield part;
        abortable.throwIfAborted();
      }
    }
  } catch (error) {
    abortable.throwIfAborted();
    throw thrownError(error, call.secrets, Date.now());
  } finally {
    abortable.end();
    close();
  }
}
