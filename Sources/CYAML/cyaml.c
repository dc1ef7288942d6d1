#include "CYAML.h"

const unsigned char *cyaml_scalar_text(const yaml_event_t *event) { return event->data.scalar.value; }
size_t cyaml_scalar_length(const yaml_event_t *event) { return event->data.scalar.length; }
size_t cyaml_line(const yaml_parser_t *parser) { return parser->problem_mark.line + 1; }
