#ifndef CYAML_H
#define CYAML_H
#include <stddef.h>
#include <yaml.h>

/* The event's payload is a C union with nested structs of the same name in every case; these read the two that matter. */
const unsigned char *cyaml_scalar_text(const yaml_event_t *event);
size_t cyaml_scalar_length(const yaml_event_t *event);
size_t cyaml_line(const yaml_parser_t *parser);

#endif
