/** The page of a sign-in, apart: types of the public module must not lead to those of an optional package. */

/** The view that a person is shown: whose server it is, and the page to sign in at. */
export interface Page {
  readonly server: string
  readonly url: string
  readonly origin: string
}
