import type { Effect, FileSystem, Layer, Path, Stream } from "effect"
import { Context } from "effect"
import { Agent, type AgentError, type AgentEvent, type ChatModel, type ModelError } from "effect-deepagents"
import {
  CredentialKey,
  CredentialStore,
  MemoryStore,
  MemoryTools,
  Storage,
  type StoreError,
  TraceExport,
  TraceStore
} from "effect-deepagents/stores"
import type { AiError, EmbeddingModel } from "effect/ai"
import type { HttpClient, HttpClientError } from "effect/http"
import type { ChildProcessSpawner } from "effect/process"
import type { SqlClient } from "effect/sql"
import { expectTypeOf } from "vitest"

class Tenant extends Context.Service<Tenant, string>()("Tenant") {}

// An agent needs the store for its tools, and an embedding model only if meaning is asked for.
const plain = Agent.make({ name: "a", prompt: "", tools: MemoryTools.make({ namespace: "x" }) })
expectTypeOf(plain).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | MemoryStore.MemoryStore>
>()
const meaningful = Agent.make({ name: "a", prompt: "", tools: MemoryTools.withEmbeddings({ namespace: Tenant }) })
expectTypeOf(meaningful).toEqualTypeOf<
  Agent.Agent<
    string,
    ModelError.ModelError,
    ChatModel.ChatModel | MemoryStore.MemoryStore | EmbeddingModel.EmbeddingModel | Tenant
  >
>()

expectTypeOf(MemoryStore.recall("x", "y")).toEqualTypeOf<
  Effect.Effect<
    ReadonlyArray<MemoryStore.Fact>,
    StoreError.StoreError | AiError.AiError,
    MemoryStore.MemoryStore | EmbeddingModel.EmbeddingModel
  >
>()

// Recording adds the store, and its failure.
const recorded = Agent.stream(plain, "").pipe(TraceStore.record())
expectTypeOf(recorded).toEqualTypeOf<
  Stream.Stream<
    AgentEvent.AgentEvent,
    ModelError.ModelError | AgentError.AgentError | StoreError.StoreError,
    ChatModel.ChatModel | MemoryStore.MemoryStore | TraceStore.TraceStore
  >
>()
expectTypeOf(TraceExport.send("x", { url: "" })).toEqualTypeOf<
  Effect.Effect<
    void,
    StoreError.StoreError | HttpClientError.HttpClientError,
    TraceStore.TraceStore | HttpClient.HttpClient
  >
>()

// Errors and services of a refresh are passed on.
declare const store: CredentialStore.CredentialStore["Service"]
declare const refresh: Effect.Effect<CredentialStore.Credential, "refused", Tenant>
expectTypeOf(store.refreshed("x", "y", { refresh: () => refresh })).toEqualTypeOf<
  Effect.Effect<CredentialStore.Credential, "refused" | StoreError.StoreError, Tenant>
>()
// @ts-expect-error: a secret is Redacted
CredentialStore.ApiKey.make({ key: "plain" })

// Every store needs a storage, and every storage needs its own base.
expectTypeOf(MemoryStore.layer).toEqualTypeOf<Layer.Layer<MemoryStore.MemoryStore, never, Storage.Storage>>()
expectTypeOf(TraceStore.layer).toEqualTypeOf<Layer.Layer<TraceStore.TraceStore, never, Storage.Storage>>()
expectTypeOf(CredentialStore.layer).toEqualTypeOf<
  Layer.Layer<CredentialStore.CredentialStore, never, Storage.Storage | CredentialKey.CredentialKey>
>()
expectTypeOf(CredentialKey.layerKeychain({ service: "x" })).toEqualTypeOf<
  Layer.Layer<CredentialKey.CredentialKey, StoreError.StoreError, ChildProcessSpawner.ChildProcessSpawner>
>()
expectTypeOf(Storage.layerFile({ folder: "x" })).toEqualTypeOf<
  Layer.Layer<Storage.Storage, never, FileSystem.FileSystem | Path.Path>
>()
expectTypeOf(Storage.layerSql).toEqualTypeOf<Layer.Layer<Storage.Storage, StoreError.StoreError, SqlClient.SqlClient>>()
