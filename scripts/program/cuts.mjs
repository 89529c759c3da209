/**
 * The parts of packages that the program never calls, and leaves out. A build fails when a package no longer has a part
 * that is cut here, so that somebody looks at the update.
 */
import { parseAst } from "rolldown/parseAst"

const words = (text) => text.trim().split(/\s+/)

const openAi = "/openai/resources"
const anthropic = "/@anthropic-ai/sdk/resources"

/** The resources of clients that the program never asks for: empty classes of the same names take their place. */
const emptied = [
  // The program asks OpenAI for responses, files and batches, and reads all streams itself.
  ...words(`
    admin audio beta containers conversations evals fine-tuning graders live realtime safety skills uploads
    vector-stores webhooks`).map((name) => `${openAi}/${name}/${name}.mjs`),
  ...words("content-provenance-checks decisions images moderations videos").map((name) => `${openAi}/${name}.mjs`),
  ...words("ChatCompletionRunner ChatCompletionStream ChatCompletionStreamingRunner responses/ResponseStream").map(
    (name) => `/openai/lib/${name}.mjs`
  ),
  // The program asks Anthropic for messages, batches and files.
  ...words("organization skills user-profiles").map((name) => `${anthropic}/${name}/${name}.mjs`),
  ...words(`
    agents environments memory-stores messages organization sessions skills tunnels user-profiles
    vaults`).map((name) => `${anthropic}/beta/${name}/${name}.mjs`),
  ...words("deployment-runs deployments dreams webhooks").map((name) => `${anthropic}/beta/${name}.mjs`),
  "/@anthropic-ai/sdk/lib/MessageStream.mjs"
]

const namesOf = (node) => {
  if (node.type !== "ExportNamedDeclaration") return []
  const { declaration, specifiers } = node
  if (declaration === null) return specifiers.map(({ exported }) => exported.name)
  return declaration.type === "VariableDeclaration"
    ? declaration.declarations.map(({ id }) => id.name)
    : [declaration.id.name]
}

/** Empty classes, but errors, which a server may answer with any request. */
const emptyClasses = (code, id) => {
  const names = parseAst(code).body.flatMap(namesOf)
  const errors = `${id.slice(0, id.search(/[/](resources|lib)[/]/))}/core/error.mjs`
  return names
    .map((name) =>
      name.endsWith("Error")
        ? `export { APIError as ${name} } from ${JSON.stringify(errors)}`
        : `export class ${name} {}`
    )
    .join("\n")
}

/**
 * The classes of pdf.js that draw pages, edit them or fill in forms: the program reads text. Images stay, since the glyphs
 * of a font may be images.
 */
const drawing = words(`
  AltText Annotation AnnotationEditor AnnotationEditorLayer AnnotationEditorUIManager AnnotationElement
  AnnotationFactory AnnotationLayer CanvasBBoxTracker CanvasDependencyTracker CanvasGraphics ColorPicker
  Comment DOMFilterFactory DrawLayer DrawingEditor EditorToolbar FontLoader FreeDrawOutliner FreeTextEditor
  HighlightEditor InkDrawOutline InkEditor InternalRenderTask LinkAnnotationElement PDFEditor PopupElement
  SignatureEditor SignatureExtractor StampEditor TextLayer TilingPattern WebGPU WidgetAnnotation XFAFactory
  XfaLayer getXfaFontName`)

/** Node has a decoder of Brotli. The limit is far above a stream of a page. */
const brotli = `() => {
  const { brotliDecompressSync } = process.getBuiltinModule("node:zlib")
  return (bytes) => {
    const text = brotliDecompressSync(bytes, { maxOutputLength: 268435456 })
    return new Int8Array(text.buffer, text.byteOffset, text.length)
  }
}`

/** pdf.js without `drawing`, and with the decoder of Node. */
const withoutDrawing = (code) => {
  const declared = parseAst(code).body.flatMap((node) =>
    node.type === "VariableDeclaration" ? node.declarations : node.type === "FunctionDeclaration" ? [node] : []
  )
  const cuts = declared.flatMap(({ body, id, init }) => {
    if (id.name === "makeBrotliDecode") return [{ start: init.start, end: init.end, text: brotli }]
    if (!drawing.includes(init?.id?.name ?? id.name)) return []
    return [init === undefined ? { ...body, text: "{}" } : { start: init.start, end: init.end, text: "class {}" }]
  })
  if (cuts.length !== drawing.length + 1)
    throw new Error(`pdf.js has ${cuts.length} of the ${drawing.length + 1} parts that are cut`)
  return cuts
    .toSorted((left, right) => right.start - left.start)
    .reduce((text, cut) => text.slice(0, cut.start) + cut.text + text.slice(cut.end), code)
}

/** Modules that get another text, by the end of their path. */
const written = {
  // The part of undici that the program uses: the whole has a second `fetch`, caches and mocks.
  "/platform-node/dist/Undici.js": () => `
    import Agent from "undici/lib/dispatcher/agent.js"
    import Dispatcher from "undici/lib/dispatcher/dispatcher.js"
    import api from "undici/lib/api/index.js"
    import buildConnector from "undici/lib/core/connect.js"
    Object.assign(Dispatcher.prototype, api)
    export { Agent, buildConnector, Dispatcher }
    export default { Agent, buildConnector, Dispatcher }`,
  // One parser of HTTP/1, which all processors run.
  "/undici/lib/llhttp/llhttp_simd-wasm.js": () => `module.exports = require("./llhttp-wasm.js")`,
  // The program sends commands by their names.
  "/redis/dist/index.js": () => `
    exports.createClient = require("../../@redis/client/dist/lib/client/index.js").default.create
    exports.SocketTimeoutError = require("../../@redis/client/dist/lib/errors.js").SocketTimeoutError`,
  "/@redis/client/dist/lib/commands/index.js": () => `
    exports.default = {
      AUTH: require("./AUTH.js").default,
      CLIENT_SETNAME: require("./CLIENT_SETNAME.js").default,
      READONLY: require("./READONLY.js").default
    }
    exports.NON_STICKY_COMMANDS = exports.default`,
  "/@redis/client/dist/lib/command-metadata/command-metadata-data.js": () => "exports.COMMAND_METADATA = {}",
  // Pages are given to turndown as trees, and nobody asks for their style sheets.
  "/@mixmark-io/domino/lib/index.js": () => "",
  "/cssomnom/dist/parse.js": () => "export const parse = () => null",
  "/unpdf/dist/pdfjs.mjs": withoutDrawing
}

/** Makes the plugin that cuts. Its build fails when a part was not there. */
export const makeCuts = () => {
  const missing = new Set([...emptied, ...Object.keys(written)])
  return {
    name: "cuts",
    transform(code, id) {
      const end = [...emptied, ...Object.keys(written)].find((one) => id.endsWith(one))
      if (end === undefined) return undefined
      missing.delete(end)
      return { code: (written[end] ?? emptyClasses)(code, id), map: null }
    },
    buildEnd(error) {
      if (error === undefined && missing.size > 0) throw new Error(`The program has no part ${[...missing].join(", ")}`)
    }
  }
}
