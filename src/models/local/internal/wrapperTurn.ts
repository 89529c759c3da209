/**
 * Turns by node-llama-cpp's own chat wrapper, which knows the model's format and holds arguments to their schema by a
 * grammar.
 */
import * as Result from "effect/Result"
import type {
  ChatModelFunctions,
  ChatWrapper,
  LLamaChatContextShiftOptions,
  LlamaChatResponseFunctionCallParamsChunk,
  LlamaGrammar,
  LlamaText
} from "node-llama-cpp"
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import type { SimpleChoice } from "../../internal/turn/choice.ts"
import { budgetOf } from "../../internal/turn/thinking.ts"
import type { Delta } from "./codecs/Codec.ts"
import { makeVoice } from "./codecs/scanner.ts"
import type { Engine } from "./engine.ts"
import { adapt, type GrammarSchema } from "./grammarSchema.ts"
import { toHistory } from "./history.ts"
import { type LocalRequest, type Finish, type PreparedTurn, repeatWindow, samplingOf } from "./turn.ts"

/** More calls in one turn are a model that goes round in circles. */
const parallelLimit = 8

/** Tokens that the wrapper puts around calls by itself: they do not count as generated. */
const slack = 64

const full = "the context is full"

/** Makes a wrapper that starts each turn with a call to one of the given functions. */
const forcing = (wrapper: ChatWrapper, all: ChatModelFunctions, nothing: LlamaText): ChatWrapper =>
  new Proxy(wrapper, {
    get: (target, key) => {
      if (key !== "generateContextState") return Reflect.get(target, key, target)
      const generate: ChatWrapper["generateContextState"] = (options) => {
        // All tools stay in the prompt, which then begins as in the other rounds.
        const { contextText, stopGenerationTriggers } = target.generateContextState({
          ...options,
          availableFunctions: all
        })
        return { contextText, stopGenerationTriggers, noPrefixTrigger: { type: "functionCall", inject: nothing } }
      }
      return generate
    }
  })

/**
 * Makes a wrapper that puts the beginning-of-sequence token into a prompt only once. ChatML's wrapper repeats it if a
 * message begins with the same token.
 */
const beginningOnce = (wrapper: ChatWrapper, { library, model }: Engine): ChatWrapper => {
  const { bos } = model.tokens
  const begin = wrapper.generateContextState({
    chatHistory: [
      { type: "user", text: "" },
      { type: "model", response: [] }
    ]
  })
  const [first, second] = begin.contextText.tokenize(model.tokenizer)
  if (bos === null || first !== bos || second !== bos) return wrapper
  return new Proxy(wrapper, {
    get: (target, key) => {
      if (key !== "generateContextState") return Reflect.get(target, key, target)
      const generate: ChatWrapper["generateContextState"] = (options) => {
        const state = target.generateContextState(options)
        return { ...state, contextText: library.LlamaText(state.contextText.values.slice(1)) }
      }
      return generate
    }
  })
}

const offered = (functions: ChatModelFunctions, choice: SimpleChoice): ChatModelFunctions => {
  if (typeof choice === "string") return functions
  const one = functions[choice.tool]
  return one === undefined ? functions : { [choice.tool]: one }
}

/** The calls of a turn, which come as text and, when they are whole, as values. */
const makeCallReader = (emit: (delta: Delta) => void, schemas: ReadonlyMap<string, GrammarSchema>) => {
  let open: { readonly call: number; readonly name: string; raw: string } | undefined
  return {
    chunk: ({ callIndex, functionName, paramsChunk }: LlamaChatResponseFunctionCallParamsChunk): void => {
      if (open?.call !== callIndex) {
        open = { call: callIndex, name: functionName, raw: "" }
        emit({ _tag: "CallStart", call: callIndex, name: functionName })
      }
      open.raw += paramsChunk
      emit({ _tag: "CallDelta", call: callIndex, text: paramsChunk })
    },
    whole: (): void => {
      if (open === undefined) return
      const { call, name, raw } = open
      const parsed = Result.try((): unknown => JSON.parse(raw))
      const args = Result.isSuccess(parsed) && isObject(parsed.success) ? parsed.success : undefined
      open = undefined
      if (args === undefined) emit({ _tag: "Malformed", call, name, raw, problem: "the arguments are not an object" })
      else emit({ _tag: "Call", call, name, arguments: schemas.get(name)?.restore(args) ?? args })
    },
    /** Says whether a call was left open. */
    end: (problem: string): boolean => {
      if (open === undefined) return false
      const { call, name, raw } = open
      open = undefined
      emit({ _tag: "Malformed", call, name, raw, problem })
      return true
    }
  }
}

/** Makes what prepares the turns of one session. */
export const makeWrapperTurns = (engine: Engine, baseWrapper: ChatWrapper) => {
  const { library, model } = engine
  const wrapper = beginningOnce(baseWrapper, engine)
  const adapted = new WeakMap<JsonObject, GrammarSchema>()
  const schemaOf = (tool: ToolDefinition): GrammarSchema => {
    const own = adapted.get(tool.parameters) ?? adapt(tool.parameters)
    adapted.set(tool.parameters, own)
    return own
  }
  const thinks = wrapper.settings.segments?.thought !== undefined

  return (prompt: LocalRequest, grammar: LlamaGrammar | undefined): PreparedTurn => {
    const { settings, toolChoice, tools } = prompt
    const history = toHistory(prompt.systemPrompt, prompt.turns, tools, thinks)
    const schemas = new Map(tools.map((tool) => [tool.name, schemaOf(tool)]))
    const functions: ChatModelFunctions = Object.fromEntries(
      tools.map((tool) => [tool.name, { description: tool.description, params: schemaOf(tool).schema }])
    )
    const isForced = tools.length > 0 && toolChoice !== "auto" && toolChoice !== "none"
    const chatWrapper = isForced ? forcing(wrapper, functions, library.LlamaText("")) : wrapper
    const tokens = chatWrapper
      .generateContextState({ chatHistory: history, availableFunctions: functions, documentFunctionParams: true })
      .contextText.tokenize(model.tokenizer)

    const generate: PreparedTurn["generate"] = (sequence, limit, signal, emit) => {
      const chat = new library.LlamaChat({ contextSequence: sequence, chatWrapper })
      const text = makeVoice((delta) => emit({ _tag: "Text", text: delta }), false)
      const reasoning = makeVoice((delta) => emit({ _tag: "Reasoning", text: delta }), true)
      const calls = makeCallReader(emit, schemas)
      const filled = new AbortController()
      let reasoningTokens = 0
      const finishWith = (reason: Finish["reason"]): Finish => ({ reason, reasoningTokens })
      // By itself it would forget the beginning of the conversation, silently.
      const contextShift: LLamaChatContextShiftOptions = {
        size: 1,
        strategy: () => {
          filled.abort(full)
          return {
            chatHistory: [
              { type: "user", text: "" },
              { type: "model", response: [] }
            ]
          }
        }
      }
      const shared = {
        ...samplingOf(settings),
        signal: AbortSignal.any([signal, filled.signal]),
        maxTokens: limit,
        contextShift,
        repeatPenalty:
          settings.repeatPenalty === undefined
            ? (false as const)
            : { penalty: settings.repeatPenalty, lastTokens: repeatWindow, penalizeNewLine: false },
        ...(settings.thinking === undefined ? {} : { budgets: { thoughtTokens: budgetOf(settings.thinking) } }),
        onResponseChunk: (chunk: {
          readonly type: string | undefined
          text: string
          tokens: ReadonlyArray<unknown>
        }) => {
          if (chunk.type === undefined) return text.say(chunk.text)
          text.pause()
          reasoningTokens += chunk.tokens.length
          reasoning.say(chunk.text)
        }
      }
      return chat
        .generateResponse(history, {
          ...shared,
          ...(grammar !== undefined
            ? { grammar }
            : tools.length === 0
              ? {}
              : {
                  functions: isForced ? offered(functions, toolChoice) : functions,
                  documentFunctionParams: true,
                  maxParallelFunctionCalls: parallelLimit,
                  onFunctionCallParamsChunk: (chunk) => {
                    text.pause()
                    calls.chunk(chunk)
                  },
                  onFunctionCall: calls.whole
                })
        })
        .then(
          ({ metadata }) => {
            if (grammar === undefined) text.end()
            const cut = calls.end("the turn reached its length limit inside of the call")
            return finishWith(cut || metadata.stopReason === "maxTokens" ? "length" : "stop")
          },
          (cause: unknown) => {
            if (filled.signal.aborted) {
              calls.end("the context was full before the call was whole")
              return finishWith("length")
            }
            // A grammar lets through values that its schema does not: a number too large, for one.
            const problem = cause instanceof Error ? cause.message : String(cause)
            return !signal.aborted && calls.end(problem) ? finishWith("stop") : Promise.reject(cause)
          }
        )
        .finally(() => chat.dispose())
    }
    return { tokens, slack, generate }
  }
}
