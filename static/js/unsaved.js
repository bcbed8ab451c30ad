// Before a form with unsaved changes is left (a link, another form, a closed tab), the browser asks.
const form = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-unsaved]"));
const note = document.querySelector("[data-unsaved-note]");
let isSent = false;

/**
 * Whether a field differs from what the server sent; a value that the browser restored counts.
 * @param {Element} field
 */
function isChanged(field) {
  if (field instanceof HTMLSelectElement) {
    const options = [...field.options];
    const chosen = options.some((option) => option.defaultSelected);
    return options.some((option, index) =>
      chosen ? option.selected !== option.defaultSelected : option.selected && index > 0,
    );
  }
  if (field instanceof HTMLInputElement && /^(checkbox|radio)$/.test(field.type)) {
    return field.checked !== field.defaultChecked;
  }
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) {
    return field.type !== "hidden" && field.value !== field.defaultValue;
  }
  return false;
}

if (form) {
  const isUnsaved = () => !isSent && [...form.elements].some(isChanged);
  const show = () => note?.toggleAttribute("hidden", !isUnsaved());
  form.addEventListener("input", show);
  form.addEventListener("submit", () => (isSent = true));
  addEventListener("pageshow", () => {
    isSent = false;
    show();
  });
  addEventListener("beforeunload", (event) => {
    if (isUnsaved()) event.preventDefault();
  });
}
