/**
 * Sandboxes of Modal. Needs the package `modal`.
 */
export * as ModalSandbox from "./ModalSandbox.ts"
